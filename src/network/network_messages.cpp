// SPDX-License-Identifier: Apache-2.0
// Passes the turn from message to message, and runs the messages of an exchange to completion.
#include "network/network_messages.h"

#include "base/error.h"
#include "base/scope_exit.h"
#include "base/text.h"
#include "network/call_watchdog.h"
#include "network/network_message.h"
#include "network/stream_connections.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <memory_resource>
#include <vector>

namespace hccl::network {
namespace {

constexpr std::uint32_t kMessageLane = 0xffffffff;  // no stream has this ordinal
// If a group has more than kFewMessages messages, each send asks for an answer of its own, because
// the search for later sends to the same rank would take quadratic time.
constexpr std::size_t kFewMessages = 64;

// The messages of one exchange.
using Items = std::pmr::deque<NetworkMessage>;
constexpr std::size_t kAtHand = 2048;  // bytes on the stack, enough for a few messages

bool sends_to(int peer, std::span<const PointToPoint> calls) {
  return std::ranges::any_of(calls, [&](const PointToPoint& call) {
    return call.direction == Direction::send && call.peer == peer;
  });
}

const NetworkMessage* first_open(const Items& items) {
  const auto found = std::ranges::find(items, false, &NetworkMessage::complete);
  return found == items.end() ? nullptr : &*found;
}

// Returns whether an item can get its turn only from another stream, because none of `items` has
// the turn on the item's link.
bool waits_for_another_stream(const Items& items) {
  return std::ranges::any_of(items, [&](const NetworkMessage& item) {
    const auto before = [&](const NetworkMessage& other) {
      return !other.complete() && other.has_turn() &&
             other.call().direction == item.call().direction &&
             other.call().peer == item.call().peer;
    };
    return !item.complete() && !item.has_turn() && std::ranges::none_of(items, before);
  });
}

// Blocks, for at most kIdlePeriod, until an item whose turn it is can proceed, or
// NetworkBackend::wake() is called, for example because another stream passes the turn to an item.
void sleep(const Items& items, transport::WaitSet& wait_set, std::atomic<int>& waiting_for_turns) {
  const bool waits = waits_for_another_stream(items);
  if (waits) ++waiting_for_turns;  // from now on, finish() wakes the streams
  const ScopeExit withdraw([&] {
    if (waits) --waiting_for_turns;
  });
  if (waits && !waits_for_another_stream(items)) return;  // an item has just got its turn
  std::vector<transport::WaitSet::Entry> entries;
  for (const NetworkMessage& item : items) {
    if (!item.complete() && item.has_turn()) entries.push_back(item.interest());
  }
  static_cast<void>(wait_set.wait(entries, Deadline::after(kIdlePeriod)));
}

}  // namespace

// Connection 0 carries the messages from the lower to the higher rank, connection 1 the others.
void NetworkMessages::open(DirectedLink& link, const PointToPoint& call) {
  const bool upwards = (call.direction == Direction::send) == (network_.rank() < call.peer);
  link.endpoint = network_.open(call.peer, {kMessageLane, upwards ? 0U : 1U});
}

void NetworkMessages::number(PointToPoint& call, std::uint64_t stream) {
  DirectedLink& on = link_of(call);
  const std::lock_guard lock(queued_mutex_);
  on.queued_on.push_back(stream);
  call.number = on.numbered++;
}

bool NetworkMessages::are_queued_elsewhere(std::uint64_t stream) const {
  const std::lock_guard lock(queued_mutex_);
  const auto elsewhere = [&](const DirectedLink& link) {
    return std::ranges::any_of(link.queued_on, [&](std::uint64_t on) { return on != stream; });
  };
  return std::ranges::any_of(sends_, elsewhere) || std::ranges::any_of(receives_, elsewhere);
}

// Either a stream that begins to wait sees the new turn, or this thread sees that the stream is
// waiting, because the accesses to `turn` and `waiting_for_turns_` are sequentially consistent.
void NetworkMessages::finish(DirectedLink& link, const PointToPoint& call) {
  network_.counted().add(*link.endpoint, link.counted, "point_to_point");
  {
    const std::lock_guard lock(queued_mutex_);
    link.queued_on.pop_front();
  }
  link.turn.store(call.number + 1, std::memory_order_seq_cst);
  if (waiting_for_turns_.load(std::memory_order_seq_cst) > 0) network_.wake();
  if (call.direction == Direction::receive) probe_.note_received();
}

void NetworkMessages::part(Deadline deadline) {
  for (const std::deque<DirectedLink>* const links : {&sends_, &receives_}) {
    for (const DirectedLink& link : *links) {
      if (link.endpoint) network_.part_from(*link.endpoint, deadline);
    }
  }
}

void NetworkMessages::exchange(StreamConnections& stream, std::span<const PointToPoint> calls,
                               const MessagePlace& place, GroupLookahead& ahead) {
  network_.throw_if_failed();
  const std::span<const PointToPoint> behind = ahead.next();
  for (const PointToPoint& call : calls) {
    if (call.direction == Direction::receive) probe_.take_back(link_of(call));
  }
  std::array<std::byte, kAtHand> at_hand;
  std::pmr::monotonic_buffer_resource memory(at_hand.data(), at_hand.size());
  Items items(&memory);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const PointToPoint& call = calls[i];
    network_.register_memory(call.address, call.bytes());
    const bool is_last =
        calls.size() > kFewMessages ||
        (!sends_to(call.peer, calls.subspan(i + 1)) && !sends_to(call.peer, behind));
    items.emplace_back(call, call.direction == Direction::send && is_last, *this, network_.arena());
  }
  const auto doing = [&] {
    const NetworkMessage* const open = first_open(items);
    return describe(open != nullptr ? open->call() : calls.front());
  };
  const auto awaited = [&] {
    std::vector<int> ranks;
    for (const NetworkMessage& item : items) {
      if (!item.complete()) ranks.push_back(item.call().peer);
    }
    return ranks;
  };
  const auto advance = [&] {
    bool moved = false;
    for (NetworkMessage& item : items) moved = item.advance(network_.rank()) || moved;
    return moved;
  };
  try {
    bool moved = advance();
    if (first_open(items) == nullptr) return;  // no watchdog, because nothing waits
    const CallPosition next_collective{place.ordinal, stream.calls()};
    CallWatchdog watch(network_, {next_collective, false, doing, awaited, &ahead, stream.id()});
    Backoff backoff(network_.ladder(), watch);
    for (; first_open(items) != nullptr; moved = advance()) {
      if (!backoff.sleep_after(moved)) continue;
      transport::WaitSet& wait_set = stream.wait_set();
      watch.on_attempt();  // a fault may have been raised before the wait set existed
      sleep(items, wait_set, waiting_for_turns_);
    }
  } catch (const transport::PeerLost& lost) {
    throw_lost(network_, stream.wait_set(), doing(), lost);
  }
}

}  // namespace hccl::network
