// SPDX-License-Identifier: Apache-2.0
// Which messages have their turn, and waiting for those of an exchange.
#include "comm/fabric_messages.h"

#include "base/error.h"
#include "base/text.h"
#include "comm/fabric_message.h"
#include "comm/fabric_watch.h"

#include <algorithm>
#include <array>
#include <deque>
#include <memory_resource>
#include <optional>

namespace hccl::comm {
namespace {

using node::Direction;
using node::PointToPoint;

constexpr std::uint32_t kMessageLane = 0xffffffff;  // no stream's
// In a group of more than kFewMessages, every send asks for an answer of its own.
constexpr std::size_t kFewMessages = 64;

// The messages of a call.
using Items = std::pmr::deque<FabricMessage>;
constexpr std::size_t kAtHand = 2048;  // bytes: a few messages need no memory of the heap

bool sends_to(int peer, std::span<const PointToPoint> calls) {
  return std::ranges::any_of(calls, [&](const PointToPoint& call) {
    return call.direction == Direction::send && call.peer == peer;
  });
}

const FabricMessage* first_open(const Items& items) {
  const auto found = std::ranges::find(items, false, &FabricMessage::complete);
  return found == items.end() ? nullptr : &*found;
}

// Returns whether an item waits for a message of another stream. Those before it here pass their
// turn to it.
bool waits_for_another_stream(const Items& items) {
  return std::ranges::any_of(items, [&](const FabricMessage& item) {
    const auto before = [&](const FabricMessage& other) {
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
  for (const FabricMessage& item : items) {
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

void FabricMessages::number(PointToPoint& call, std::uint64_t stream) {
  Way& on = way(call);
  const std::lock_guard lock(queued_mutex_);
  on.queued_on.push_back(stream);
  call.number = on.numbered++;
}

bool FabricMessages::are_queued_elsewhere(std::uint64_t stream) const {
  const std::lock_guard lock(queued_mutex_);
  const auto elsewhere = [&](const Way& way) {
    return std::ranges::any_of(way.queued_on, [&](std::uint64_t on) { return on != stream; });
  };
  return std::ranges::any_of(sends_, elsewhere) || std::ranges::any_of(receives_, elsewhere);
}

// Passes the turn; like the announcements of those that wait for it, sequentially consistent: one
// of the two sees the other.
void FabricMessages::finish(Way& way, const PointToPoint& call) {
  fabric_.traffic().add(*way.endpoint, way.counted, "point_to_point");
  {
    const std::lock_guard lock(queued_mutex_);
    way.queued_on.pop_front();
  }
  way.turn.store(call.number + 1, std::memory_order_seq_cst);
  if (waiting_for_turns_.load(std::memory_order_seq_cst) > 0) wake();
  if (call.direction == Direction::receive && probe_sleeps_.load(std::memory_order_seq_cst))
    ring_probe();
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

void FabricMessages::exchange(const FabricStream& stream, std::span<const PointToPoint> calls,
                              std::span<const PointToPoint> behind, device::Arena& arena) {
  if (fabric_.fault().raised()) fabric_.fault().throw_error();
  take_from_probes(calls);
  std::array<std::byte, kAtHand> at_hand;
  std::pmr::monotonic_buffer_resource memory(at_hand.data(), at_hand.size());
  Items items(&memory);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const PointToPoint& call = calls[i];
    fabric_.learn(call.address, call.bytes());
    const bool is_last =
        calls.size() > kFewMessages ||
        (!sends_to(call.peer, calls.subspan(i + 1)) && !sends_to(call.peer, behind));
    items.emplace_back(call, call.direction == Direction::send && is_last, *this, arena);
  }
  const auto doing = [&] {
    const FabricMessage* const open = first_open(items);
    return node::describe(open != nullptr ? open->call() : calls.front());
  };
  const auto awaited = [&] {
    std::vector<int> ranks;
    for (const FabricMessage& item : items) {
      if (!item.complete()) ranks.push_back(item.call().peer);
    }
    return ranks;
  };
  const auto advance = [&] {
    bool moved = false;
    for (FabricMessage& item : items) moved = item.advance(fabric_.options().rank) || moved;
    return moved;
  };
  const auto wait_set = [&]() -> transport::WaitSet& { return wait_set_of(stream.id); };
  naming_the_lost(fabric_, wait_set, doing, [&] {
    bool moved = advance();
    if (first_open(items) == nullptr) return;  // a short one need not be watched
    const Place next_collective{stream.ordinal, fabric_.calls_of(stream.ordinal)};
    FabricWatch watch(fabric_, {next_collective, false, doing, awaited, stream.upcoming});
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
