// SPDX-License-Identifier: Apache-2.0
// Decides which later groups may begin early, and moves their messages.
#include "node/exchange_lookahead.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hccl::node {
namespace {

using State = MessageItem::State;

// Returns whether the item is known to complete even if its peer makes no further call. Any other
// item may block its stream, and the program may rely on later calls not running until the item is
// complete.
bool cannot_block(const MessageItem& item) {
  if (item.state == State::done) return true;
  if (item.state != State::offered) return false;
  const PointToPoint& call = *item.call;
  const Receipt& receipt = item.mailbox->receipt(call.number);
  return receipt.awaited.load(std::memory_order_acquire) ==
             awaiting(call.number, call.count, call.type) ||
         receipt.taken.load(std::memory_order_acquire) > call.number;
}

}  // namespace

bool ExchangeLookahead::advance() {
  bool moved = false;
  do {
    moved = offer_messages() || moved;
    moved = take_messages() || moved;
  } while (collect_groups());
  return moved;
}

// Announces a message only once its mailbox entry is free: the previous message there, perhaps one
// of another stream, must have been taken.
void ExchangeLookahead::announce_awaited(std::span<const MessageItem> items) {
  for (const MessageItem& item : items) {
    if (item.sends() || item.state != State::begun) continue;
    const PointToPoint& call = *item.call;
    Receipt& receipt = item.mailbox->receipt(call.number);
    const bool is_next =
        call.number < Mailbox::kMessages ||
        receipt.taken.load(std::memory_order_acquire) == call.number + 1 - Mailbox::kMessages;
    const std::uint64_t awaited = awaiting(call.number, call.count, call.type);
    if (is_next && receipt.awaited.load(std::memory_order_relaxed) != awaited)
      receipt.awaited.store(awaited, std::memory_order_release);
  }
}

// Collects later groups that can begin. If ahead_.may_begin() is false, collects only the next
// group, and only once no earlier group can block. Returns whether it found any. Stops for good at
// a group for which there is no room, and at a group that would read memory that an earlier receive
// writes, or write memory that an earlier send reads. Also stops at a group whose memory may turn
// out to be inaccessible, because the current group would then report the error of a later group.
bool ExchangeLookahead::collect_groups() {
  if (seen_all_ || !pending_.has_room_for(1)) return false;
  const bool may_begin = ahead_.may_begin();
  if (!may_begin && !pending_.none_can_block(cannot_block)) return false;
  if (!skipped_) ahead_.skip(pending_.groups_ahead());
  skipped_ = true;
  bool found = false;
  do {
    const std::span<const PointToPoint> calls = ahead_.next();
    seen_all_ = calls.empty() || !collect(calls);
    found = found || !seen_all_;
    if (!seen_all_ && !may_begin) announce_awaited(pending_.last(calls.size()));
  } while (!seen_all_ && may_begin);
  return found;
}

// Collects all calls of a group, or none. Ignores conflicts between calls of the same group.
bool ExchangeLookahead::collect(std::span<const PointToPoint> calls) {
  const auto conflicts = [&](const PointToPoint& call) { return pending_.conflicts(call); };
  if (!pending_.has_room_for(calls.size()) || std::ranges::any_of(calls, conflicts)) return false;
  for (std::size_t put = 0; put < calls.size(); ++put) {
    MessageItem item = steps_.make_item(calls[put]);
    if (!steps_.can_begin_early(item)) {
      pending_.take_back(put);
      return false;
    }
    pending_.push_back(item);
  }
  pending_.end_group();
  return true;
}

bool ExchangeLookahead::offer_messages() {
  bool moved = false;
  for (MessageItem* item = pending_.next_send(); item != nullptr && steps_.ready(*item);
       item = pending_.next_send()) {
    steps_.offer(*item);
    moved = true;
  }
  return moved;
}

// Takes messages in order, because several receives may write the same memory.
bool ExchangeLookahead::take_messages() {
  const auto received = [](const MessageItem& item) {
    return item.sends() || item.state == State::done;
  };
  if (!std::ranges::all_of(pending_.current(), received)) return false;
  bool moved = false;
  for (MessageItem* item = pending_.next_receive(); item != nullptr && steps_.ready(*item);
       item = pending_.next_receive()) {
    // A mismatch is reported when the group itself runs.
    if (!MessageSteps::matches(*item) || !steps_.take(*item)) break;
    moved = true;
  }
  return moved;
}

}  // namespace hccl::node
