// SPDX-License-Identifier: Apache-2.0
// Advances a group's messages until all are complete.
#include "node/exchange.h"

#include "base/waiter.h"

#include <algorithm>

namespace hccl::node {

Exchange::Exchange(NodeSegment& node, StallMonitor& stalls, MessageSteps& steps,
                   const StreamPlace& place, std::span<const PointToPoint> calls,
                   GroupLookahead& ahead)
    : node_(node),
      ahead_(ahead),
      pending_(*place.pending),
      steps_(steps),
      lookahead_(steps_, pending_, ahead),
      wait_(node, stalls, place, steps_, ahead),
      remaining_(calls.size()) {
  if (!pending_.open(calls.size())) {
    for (const PointToPoint& call : calls) pending_.push_back(steps_.make_item(call));
    return;
  }
  remaining_ -= static_cast<std::size_t>(
      std::ranges::count(pending_.current(), MessageItem::State::done, &MessageItem::state));
}

Exchange::~Exchange() {
  if (failed_) pending_.clear();
}

bool Exchange::run() {
  Waiter waiter(node_.ladder());
  for (;;) {
    bool moved = advance_current();
    if (remaining_ != 0) {
      lookahead_.announce_awaited();
      // Later groups begin before the peers are rung, so that one ring serves all these steps.
      moved = lookahead_.advance() || moved;
    }
    steps_.ring_peers();
    if (remaining_ == 0) break;
    node_.throw_if_failed();
    if (moved) {
      waiter = Waiter(node_.ladder());
    } else if (!waiter.poll_again(ahead_.wait_budget())) {
      if (may_return_early()) {
        failed_ = false;
        return false;
      }
      wait_.sleep();
    }
  }
  pending_.close();
  failed_ = false;
  return true;
}

// Advances the calls of the current group. Returns whether any of them made progress.
bool Exchange::advance_current() {
  bool moved = false;
  for (MessageItem& item : pending_.current()) {
    if (item.state == MessageItem::State::done) continue;
    while (item.state != MessageItem::State::done && steps_.ready(item)) {
      steps_.advance(item);
      moved = true;
    }
    if (item.state == MessageItem::State::done) --remaining_;
  }
  return moved;
}

// Returns whether run() may return before all calls are complete. It must not return while a
// message comes in pieces, because the peer waits for the rest of that message.
bool Exchange::may_return_early() const {
  return ahead_.wait_budget() != WaitBudget::unlimited &&
         std::ranges::none_of(pending_.current(), [](const MessageItem& item) {
           return item.state == MessageItem::State::draining || item.moved != 0;
         });
}

}  // namespace hccl::node
