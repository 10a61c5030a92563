// SPDX-License-Identifier: Apache-2.0
// A message is a header, which says what is sent, and its bytes.
#include "comm/fabric_messages.h"

#include "base/error.h"
#include "base/text.h"
#include "comm/call_memory.h"
#include "comm/fabric_watch.h"
#include "executor/call_header.h"

#include <algorithm>
#include <array>
#include <deque>
#include <memory_resource>
#include <optional>

namespace hccl::comm {
namespace {

using executor::CallHeader;
using node::Direction;
using node::PointToPoint;

constexpr std::uint32_t kMessageLane = 0xffffffff;  // no stream's
constexpr std::size_t kPiece = std::size_t{256} << 10;

CallHeader header_of(const PointToPoint& call) {
  CallHeader header;
  header.collective = static_cast<std::uint8_t>(Collective::point_to_point);
  header.type = call.type;
  header.number = call.number;
  header.count = call.count;
  return header;
}

// A message on its way.
class Item {
 public:
  Item(const PointToPoint& call, FabricMessages& messages, device::Arena& arena)
      : call_(call),
        messages_(messages),
        way_(messages.way(call)),
        memory_(arena, call.address),
        header_(header_of(call)) {}
  // What is not complete then is cut, as of a collective: see FabricLane.
  ~Item() {
    if (!complete_ && has_turn() && way_.endpoint) way_.endpoint->cut();
  }
  Item(const Item&) = delete;
  Item& operator=(const Item&) = delete;

  [[nodiscard]] bool complete() const { return complete_; }
  [[nodiscard]] bool has_turn() const {
    return way_.turn.load(std::memory_order_seq_cst) == call_.number;
  }
  [[nodiscard]] const PointToPoint& call() const { return call_; }
  [[nodiscard]] transport::WaitSet::Entry interest() const {
    const bool sends = call_.direction == Direction::send;
    return {
        &endpoint(),
        {.readable = !sends, .writable = sends && !has_moved(), .flushed = sends && has_moved()}};
  }

  // Returns whether anything moved.
  bool advance(int own_rank) {
    if (complete_ || !has_turn()) return false;
    transport::Endpoint& stream = endpoint();
    bool moved = false;
    if (!has_moved())
      moved = call_.direction == Direction::send ? send(stream) : receive(stream, own_rank);
    if (!has_moved()) return moved;
    if (call_.direction == Direction::send && !stream.flushed()) return moved;
    complete_ = true;
    messages_.finish(way_, call_);
    return true;
  }

 private:
  // Whose turn it is opens it.
  [[nodiscard]] transport::Endpoint& endpoint() const {
    if (!way_.endpoint) messages_.open(way_, call_);
    return *way_.endpoint;
  }
  [[nodiscard]] bool has_moved() const {
    return header_moved_ == sizeof(CallHeader) && moved_ == call_.bytes();
  }
  [[nodiscard]] std::size_t left(std::size_t most) const {
    return static_cast<std::size_t>(std::min<std::uint64_t>(call_.bytes() - moved_, most));
  }

  bool send(transport::Endpoint& endpoint) {
    const std::span<const std::byte> rest = header_.bytes().subspan(header_moved_);
    std::span<const std::byte> piece;
    if (left(kPiece) != 0) piece = memory_.get().source(moved_, left(kPiece));
    const std::array<std::span<const std::byte>, 2> parts{rest, piece};
    const std::size_t taken = endpoint.try_send_parts(parts);
    const std::size_t of_header = std::min(taken, rest.size());
    header_moved_ += of_header;
    moved_ += taken - of_header;
    return taken > 0;
  }

  bool receive(transport::Endpoint& endpoint, int own_rank) {
    if (header_moved_ == 0) {
      const auto heard = endpoint.try_receive(sizeof(CallHeader));
      if (heard.size() < sizeof(CallHeader)) return false;
      check(CallHeader::from(heard), own_rank);
      endpoint.release(sizeof(CallHeader));
      header_moved_ = sizeof(CallHeader);
    }
    const std::size_t most = left(transport::kLongestDestination);
    if (most == 0) return true;
    const std::size_t count = endpoint.try_receive_into(memory_.get().destination(moved_, most));
    moved_ += count;
    return count > 0;
  }

  void check(const CallHeader& theirs, int own_rank) const {
    if (theirs == header_) return;
    PointToPoint sent = call_;
    sent.direction = Direction::send;
    sent.peer = own_rank;
    sent.count = theirs.count;
    sent.type = theirs.type;
    throw Error(hcclInvalidUsage,
                text("message ", call_.number, ": rank ", call_.peer, ' ', node::describe(sent),
                     " but rank ", own_rank, ' ', node::describe(call_),
                     "; both must pass the same count and type"));
  }

  const PointToPoint& call_;
  FabricMessages& messages_;
  FabricMessages::Way& way_;
  CallMemory memory_;
  const CallHeader header_;
  std::size_t header_moved_ = 0;
  std::uint64_t moved_ = 0;
  bool complete_ = false;
};

// The messages of a call.
using Items = std::pmr::deque<Item>;
constexpr std::size_t kAtHand = 2048;  // bytes: a few messages need no memory of the heap

const Item* first_open(const Items& items) {
  const auto found = std::ranges::find(items, false, &Item::complete);
  return found == items.end() ? nullptr : &*found;
}

// Whether an item waits for a message of another stream; those before it here pass their turn to
// it.
bool waits_for_another_stream(const Items& items) {
  return std::ranges::any_of(items, [&](const Item& item) {
    const auto before = [&](const Item& other) {
      return !other.complete() && other.has_turn() &&
             other.call().direction == item.call().direction &&
             other.call().peer == item.call().peer;
    };
    return !item.complete() && !item.has_turn() && std::ranges::none_of(items, before);
  });
}

// As long as it lives, passed turns ring.
class TurnWait {
 public:
  explicit TurnWait(std::atomic<int>& waiting) : waiting_(waiting) { ++waiting_; }
  ~TurnWait() { --waiting_; }
  TurnWait(const TurnWait&) = delete;
  TurnWait& operator=(const TurnWait&) = delete;

 private:
  std::atomic<int>& waiting_;
};

// Until one of the items whose turn it is can go on, or another stream has passed its turn.
void sleep(const Items& items, transport::WaitSet& wait_set, std::atomic<int>& waiting_for_turns) {
  std::optional<TurnWait> announced;
  if (waits_for_another_stream(items)) {
    announced.emplace(waiting_for_turns);
    if (!waits_for_another_stream(items)) return;  // it was passed before it could ring
  }
  std::vector<transport::WaitSet::Entry> entries;
  for (const Item& item : items) {
    if (!item.complete() && item.has_turn()) entries.push_back(item.interest());
  }
  static_cast<void>(wait_set.wait(entries, Deadline::after(executor::kLook)));
}

}  // namespace

// Channel 0 leads from the smaller rank to the larger, 1 back.
void FabricMessages::open(Way& way, const PointToPoint& call) {
  const bool upwards = (call.direction == Direction::send) == (fabric_.options().rank < call.peer);
  way.endpoint = fabric_.open(call.peer, {kMessageLane, upwards ? 0U : 1U});
}

// Passes the turn; like the announcement of a wait, sequentially consistent: one of the two sees
// the other.
void FabricMessages::finish(Way& way, const PointToPoint& call) {
  fabric_.traffic().add(*way.endpoint, way.counted, "point_to_point");
  way.turn.store(call.number + 1, std::memory_order_seq_cst);
  if (waiting_for_turns_.load(std::memory_order_seq_cst) > 0) wake();
}

void FabricMessages::forget(std::uint64_t stream) {
  const std::lock_guard lock(waits_mutex_);
  waits_.erase(stream);
}

void FabricMessages::part(Deadline deadline) {
  for (const std::deque<Way>* const ways : {&sends_, &receives_}) {
    for (const Way& way : *ways) {
      if (way.endpoint) fabric_.part_from(*way.endpoint, deadline);
    }
  }
}

void FabricMessages::wake() {
  const std::lock_guard lock(waits_mutex_);
  for (auto& [stream, wait_set] : waits_) wait_set.ring();
}

transport::WaitSet& FabricMessages::wait_set_of(std::uint64_t stream) {
  const std::lock_guard lock(waits_mutex_);
  return waits_[stream];
}

void FabricMessages::exchange(std::uint64_t stream, std::span<const PointToPoint> calls,
                              device::Arena& arena) {
  if (fabric_.fault().raised()) fabric_.fault().throw_error();
  std::array<std::byte, kAtHand> at_hand;
  std::pmr::monotonic_buffer_resource memory(at_hand.data(), at_hand.size());
  Items items(&memory);
  for (const PointToPoint& call : calls) {
    fabric_.learn(call.address, call.bytes());
    items.emplace_back(call, *this, arena);
  }
  const auto doing = [&] {
    const Item* const open = first_open(items);
    return node::describe(open != nullptr ? open->call() : calls.front());
  };
  const auto awaited = [&] {
    std::vector<int> ranks;
    for (const Item& item : items) {
      if (!item.complete()) ranks.push_back(item.call().peer);
    }
    return ranks;
  };
  const auto advance = [&] {
    bool moved = false;
    for (Item& item : items) moved = item.advance(fabric_.options().rank) || moved;
    return moved;
  };
  const auto wait_set = [&]() -> transport::WaitSet& { return wait_set_of(stream); };
  naming_the_lost(fabric_, wait_set, doing, [&] {
    bool moved = advance();
    if (first_open(items) == nullptr) return;  // a short one need not be watched
    FabricWatch watch(fabric_, std::nullopt, doing, awaited);
    executor::Rest rest(fabric_.ladder(), watch);
    for (; first_open(items) != nullptr; moved = advance()) {
      if (!rest.after(moved)) continue;
      transport::WaitSet& made = wait_set();
      watch.glance();  // what rings does so only from when it is made
      sleep(items, made, waiting_for_turns_);
    }
  });
}

}  // namespace hccl::comm
