// SPDX-License-Identifier: Apache-2.0
// Finds a rank that has begun to send this rank a message for which no receive has been posted. A
// message begins with a header, which stays in its endpoint until the receive takes it. So a probe
// borrows the endpoints of the ranks from which no receive is in flight, and returns one as soon as
// a receive has been queued.
#include "base/error.h"
#include "network/call_header.h"
#include "network/network_backend.h"
#include "network/network_messages.h"
#include "network/run_to_completion.h"

#include <set>
#include <vector>

namespace hccl::network {
namespace {

constexpr std::chrono::milliseconds kTick{1};  // Deadline::after(0) never expires

}  // namespace

// The endpoints that a probe has borrowed. Used by one thread at a time.
class NetworkMessages::Probe {
 public:
  explicit Probe(NetworkMessages& messages) : messages_(messages) {
    links_.reserve(messages.receives_.size());  // or borrow() might throw after marking a link
  }
  ~Probe() { give_back(); }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  // Borrows all endpoints that no receive uses or is about to use. A receive that gets its number
  // afterwards sees that its link is probed.
  void borrow() {
    for_each_free([&](int peer, DirectedLink& link) {
      link.probed.store(true, std::memory_order_seq_cst);
      links_.push_back({peer, &link});
    });
  }

  void give_back() noexcept {
    messages_.probe_sleeps_.store(false, std::memory_order_relaxed);
    for (const auto& [peer, link] : links_) {
      link->probed.store(false, std::memory_order_seq_cst);
      link->probed.notify_all();
    }
    links_.clear();
  }

  [[nodiscard]] std::optional<Offer> look(int first) {
    std::optional<Offer> best;
    const int ranks = messages_.network_.size();
    const auto distance = [&](int peer) { return (peer + ranks - first) % ranks; };
    for (const auto& [peer, link] : links_) {
      const std::optional<Offer> offer = look_at(peer, *link);
      if (offer && (!best || distance(peer) < distance(best->source))) best = offer;
    }
    std::erase_if(links_, [&](const Borrowed& borrowed) { return lost_.contains(borrowed.peer); });
    return best;
  }

  // Blocks until one of the borrowed endpoints has data, a receive ends or needs its endpoint, or
  // the deadline passes. Call give_back() afterwards.
  void sleep(transport::WaitSet& wait_set, Deadline deadline) const {
    std::vector<transport::WaitSet::Entry> entries;
    for (const auto& [peer, link] : links_)
      entries.push_back({link->endpoint.get(), {.readable = true}});
    // A receive that ends either sees the flag and rings, or has already ended and left a free
    // endpoint.
    messages_.probe_sleeps_.store(true, std::memory_order_seq_cst);
    bool left_out = false;
    for_each_free([&](int, const DirectedLink&) { left_out = true; });
    if (!left_out) static_cast<void>(wait_set.wait(entries, deadline));
  }

 private:
  struct Borrowed {
    int peer;
    DirectedLink* link;
  };

  // Calls visit(peer, link) for the links that are not borrowed and that no receive is using or is
  // about to use.
  template <class Visit>
  void for_each_free(Visit visit) const {
    const std::lock_guard lock(messages_.queued_mutex_);
    const int ranks = messages_.network_.size();
    for (int peer = 0; peer < ranks; ++peer) {
      if (peer == messages_.network_.rank() || lost_.contains(peer)) continue;
      DirectedLink& link = messages_.receives_[static_cast<std::size_t>(peer)];
      if (link.probed.load(std::memory_order_relaxed)) continue;
      if (link.turn.load(std::memory_order_seq_cst) == link.numbered) visit(peer, link);
    }
  }

  // A lost rank offers no message. The loss becomes a fault in the calls that need the rank.
  [[nodiscard]] std::optional<Offer> look_at(int peer, DirectedLink& link) {
    try {
      PointToPoint call;
      call.direction = Direction::receive;
      call.peer = peer;
      if (!link.endpoint) messages_.open(link, call);
      const auto heard = link.endpoint->try_receive(sizeof(CallHeader));
      if (heard.size() < sizeof(CallHeader)) return std::nullopt;
      const CallHeader header = CallHeader::from(heard);
      const auto type = static_cast<hcclDataType_t>(header.type);
      return Offer{peer, header.count * reduce::element_size(type)};
    } catch (const transport::PeerLost&) {
      lost_.insert(peer);
      link.probed.store(false, std::memory_order_seq_cst);
      link.probed.notify_all();
      return std::nullopt;
    }
  }

  NetworkMessages& messages_;
  std::vector<Borrowed> links_;
  std::set<int> lost_;
};

std::optional<Offer> NetworkMessages::probe(int first, bool only_looks, Deadline deadline) {
  std::unique_lock turn(probe_mutex_, std::try_to_lock);
  while (!turn.owns_lock()) {
    network_.throw_if_failed();
    if (only_looks || deadline.expired()) return std::nullopt;
    static_cast<void>(turn.try_lock_for(deadline.remaining(kIdlePeriod)));
  }
  {
    const std::lock_guard lock(probe_wait_mutex_);
    if (!probe_wait_) probe_wait_.emplace();
  }
  transport::WaitSet& wait_set = *probe_wait_;
  Probe probe(*this);
  Waiter waiter(network_.ladder());
  for (;;) {
    network_.throw_if_failed();
    probe.borrow();
    if (const auto found = probe.look(first)) return found;
    if (only_looks || deadline.expired()) return std::nullopt;
    if (!waiter.poll_again()) {
      probe.sleep(wait_set, Deadline::after(deadline.remaining(kIdlePeriod) + kTick));
      waiter = Waiter(network_.ladder());
    }
    probe.give_back();
  }
}

void NetworkMessages::wake_probe() {
  const std::lock_guard lock(probe_wait_mutex_);
  if (probe_wait_) probe_wait_->ring();
}

// The receives have their numbers by now: either the probe has seen the receives, or this thread
// sees the probe.
void NetworkMessages::take_from_probes(std::span<const PointToPoint> calls) {
  for (const PointToPoint& call : calls) {
    if (call.direction != Direction::receive) continue;
    DirectedLink& from = link_of(call);
    if (!from.probed.load(std::memory_order_seq_cst)) [[likely]]
      continue;
    wake_probe();
    from.probed.wait(true, std::memory_order_seq_cst);
  }
}

}  // namespace hccl::network
