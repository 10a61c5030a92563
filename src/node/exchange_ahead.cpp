// SPDX-License-Identifier: Apache-2.0
// A rank that waits begins the groups behind: it offers their messages and takes those that have
// been offered to it, so that ranks that share a core take turns once in many groups, and others do
// not wait for the news of each. Nothing is merged: each group is complete in its turn.
#include "node/exchange.h"

#include <algorithm>

namespace hccl::node {

// Returns whether anything was done.
bool Engine::Exchange::advance_ahead() {
  bool moved = false;
  do {
    moved = offer_ahead() || moved;
    moved = take_ahead() || moved;
  } while (look_ahead());
  return moved;
}

// Returns whether nothing that happens elsewhere can come before its end any more. A send stands in
// its stream until the peer takes part, and what is behind it could depend on that.
bool Engine::Exchange::cannot_block(const Item& item) {
  if (item.state == State::done) return true;
  if (item.state != State::offered) return false;
  const PointToPoint& call = *item.call;
  const Receipt& receipt = item.mailbox->receipt(call.number);
  return receipt.awaited.load(std::memory_order_acquire) ==
             awaiting(call.number, call.count, call.type) ||
         receipt.taken.load(std::memory_order_acquire) > call.number;
}

// Tells the senders of messages that have not come yet that nothing stands before them here: once
// what had the place before, perhaps on another stream, is taken.
void Engine::Exchange::tell_awaited(std::span<const Item> items) {
  for (const Item& item : items) {
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

// Collects what can be begun: not what would read what an earlier receive stores, nor store over
// what an earlier send reads, nor what needs pages, which may fail and would be the other group's
// error. Returns whether there is more to do.
bool Engine::Exchange::look_ahead() {
  if (seen_all_ || !pending_.has_room_for(1)) return false;
  const bool may_begin = ahead_.may_begin();
  if (!may_begin && !pending_.all_are(cannot_block)) return false;
  if (!skipped_) ahead_.skip(pending_.groups_ahead());
  skipped_ = true;
  bool found = false;
  do {
    const std::span<const PointToPoint> calls = ahead_.next();
    seen_all_ = calls.empty() || !collect(calls);
    found = found || !seen_all_;
    if (!seen_all_ && !may_begin) tell_awaited(pending_.last(calls.size()));
  } while (!seen_all_ && may_begin);
  return found;
}

// All calls of a group, or none. Calls of one group may touch each other's memory.
bool Engine::Exchange::collect(std::span<const PointToPoint> calls) {
  const auto conflicts = [&](const PointToPoint& call) { return pending_.conflicts(call); };
  if (!pending_.has_room_for(calls.size()) || std::ranges::any_of(calls, conflicts)) return false;
  const device::ArenaView& memory = *engine_.arena_.view();
  for (std::size_t put = 0; put < calls.size(); ++put) {
    Item item = item_of(calls[put]);
    if (item.bytes != 0 && !memory.populated(locate(item).file_offset, item.bytes)) {
      pending_.take_back(put);
      return false;
    }
    pending_.push_back(item);
  }
  pending_.end_group();
  return true;
}

// Returns whether anything was done.
bool Engine::Exchange::offer_ahead() {
  bool moved = false;
  for (Item* item = pending_.next_send(); item != nullptr && ready(*item);
       item = pending_.next_send()) {
    offer(*item);
    item->state = State::offered;
    moved = true;
  }
  return moved;
}

// Receives may store to one place, so they keep their order.
bool Engine::Exchange::take_ahead() {
  const auto received = [](const Item& item) { return item.sends() || item.state == State::done; };
  if (!std::ranges::all_of(pending_.current(), received)) return false;
  bool moved = false;
  for (Item* item = pending_.next_receive(); item != nullptr && ready(*item);
       item = pending_.next_receive()) {
    // A mismatch is told in its turn.
    const Message& message = *item->message;
    if (is_streamed(*item) || message.count != item->call->count ||
        message.type != item->call->type)
      break;
    take(*item);
    item->state = State::done;
    moved = true;
  }
  return moved;
}

}  // namespace hccl::node
