// SPDX-License-Identifier: Apache-2.0
#include "network/message_probe.h"

#include "base/scope_exit.h"
#include "base/waiter.h"
#include "network/call_header.h"
#include "network/network_backend.h"
#include "network/network_messages.h"
#include "network/run_to_completion.h"
#include "reduce/reduce.h"
#include "transport/endpoint.h"

namespace hccl::network {
namespace {

void end_loan(DirectedLink& link) noexcept {
  link.probed.store(false, std::memory_order_seq_cst);
  link.probed.notify_all();
}

}  // namespace

template <class Visit>
void MessageProbe::for_each_free(Visit visit) const {
  messages_.for_each_idle_source([&](int peer, DirectedLink& link) {
    if (peer != network_.rank() && !lost_.contains(peer) &&
        !link.probed.load(std::memory_order_relaxed))
      visit(peer, link);
  });
}

// Borrows the endpoints of all links for which no receive is queued. A receive that is numbered
// later sees `probed`, and takes the link back.
void MessageProbe::borrow() {
  for_each_free([&](int peer, DirectedLink& link) {
    link.probed.store(true, std::memory_order_seq_cst);
    borrowed_.push_back({peer, &link});
  });
}

void MessageProbe::give_back() noexcept {
  sleeps_.store(false, std::memory_order_relaxed);
  for (const Borrowed& borrowed : borrowed_) end_loan(*borrowed.link);
  borrowed_.clear();
}

std::optional<Offer> MessageProbe::look(int first) {
  std::optional<Offer> best;
  const int ranks = network_.size();
  const auto distance = [&](int peer) { return (peer + ranks - first) % ranks; };
  for (const auto& [peer, link] : borrowed_) {
    const std::optional<Offer> offer = look_at(peer, *link);
    if (offer && (!best || distance(peer) < distance(best->source))) best = offer;
  }
  std::erase_if(borrowed_, [&](const Borrowed& borrowed) { return lost_.contains(borrowed.peer); });
  return best;
}

// A lost rank offers no message. The calls that need the rank raise the fault.
std::optional<Offer> MessageProbe::look_at(int peer, DirectedLink& link) {
  try {
    PointToPoint call;
    call.direction = Direction::receive;
    call.peer = peer;
    if (!link.endpoint) messages_.open(link, call);
    const auto arrived = link.endpoint->try_receive(sizeof(CallHeader));
    if (arrived.size() < sizeof(CallHeader)) return std::nullopt;
    const CallHeader header = CallHeader::from(arrived);
    const auto type = static_cast<hcclDataType_t>(header.type);
    return Offer{peer, header.count * reduce::element_size(type)};
  } catch (const transport::PeerLost&) {
    lost_.insert(peer);
    end_loan(link);
    return std::nullopt;
  }
}

// Blocks until a borrowed endpoint has data, wake() is called, or the deadline passes. Does not
// block if a link has become free since borrow(). Call give_back() afterwards.
void MessageProbe::sleep(Deadline deadline) {
  std::vector<transport::WaitSet::Entry> entries;
  for (const Borrowed& borrowed : borrowed_)
    entries.push_back({borrowed.link->endpoint.get(), {.readable = true}});
  // A receive that ends later sees the flag and wakes this thread. A receive that has already ended
  // has left a free link, which for_each_free() finds.
  sleeps_.store(true, std::memory_order_seq_cst);
  bool left_out = false;
  for_each_free([&](int, const DirectedLink&) { left_out = true; });
  if (!left_out) static_cast<void>(wait_set_->wait(entries, deadline));
}

std::optional<Offer> MessageProbe::find(int first, bool only_looks, Deadline deadline) {
  std::unique_lock turn(mutex_, std::try_to_lock);
  while (!turn.owns_lock()) {
    network_.throw_if_failed();
    if (only_looks || deadline.expired()) return std::nullopt;
    static_cast<void>(turn.try_lock_for(deadline.remaining(kIdlePeriod)));
  }
  {
    const std::lock_guard lock(wait_mutex_);
    if (!wait_set_) wait_set_.emplace();
  }
  lost_.clear();
  borrowed_.reserve(static_cast<std::size_t>(network_.size()));  // so that borrow() cannot throw
  const ScopeExit at_end([this] { give_back(); });
  for (Waiter waiter(network_.ladder());;) {
    network_.throw_if_failed();
    borrow();
    if (const auto found = look(first)) return found;
    if (only_looks || deadline.expired()) return std::nullopt;
    if (!waiter.poll_again()) {
      sleep(deadline.within(kIdlePeriod));
      waiter = Waiter(network_.ladder());
    }
    give_back();
  }
}

void MessageProbe::wake() {
  const std::lock_guard lock(wait_mutex_);
  if (wait_set_) wait_set_->ring();
}

// The receive has already been numbered. Either the probe has seen that number and not borrowed the
// link, or this thread sees `probed`.
void MessageProbe::take_back(const DirectedLink& link) {
  if (!link.probed.load(std::memory_order_seq_cst)) [[likely]]
    return;
  wake();
  link.probed.wait(true, std::memory_order_seq_cst);
}

}  // namespace hccl::network
