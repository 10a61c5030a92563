// SPDX-License-Identifier: Apache-2.0
// Begins later groups of sends and receives while the current group waits. Ranks that share a core
// then need one context switch for many groups, and ranks with cores of their own need not wait for
// a notification after each group.
#pragma once

#include "call/lookahead.h"
#include "call/point_to_point.h"
#include "node/message_steps.h"
#include "node/pending_messages.h"

#include <span>

namespace hccl::node {

// Groups are not merged: they complete one by one, in stream order.
class ExchangeLookahead {
 public:
  ExchangeLookahead(MessageSteps& steps, PendingMessages& pending, GroupLookahead& ahead)
      : steps_(steps), pending_(pending), ahead_(ahead) {}

  // For each message that the current group still awaits, promises the sender that this rank will
  // take it as soon as it is offered (see awaiting()). Makes the promise only once the message's
  // mailbox entry is free. Call while the current group waits.
  void announce_awaited() const { announce_awaited(pending_.current()); }
  // Offers and takes messages of later groups. Returns whether any message was offered or taken.
  // Throws Error.
  bool advance();

 private:
  static void announce_awaited(std::span<const MessageItem> items);
  [[nodiscard]] bool collect_groups();
  [[nodiscard]] bool collect(std::span<const PointToPoint> calls);
  [[nodiscard]] bool offer_messages();
  [[nodiscard]] bool take_messages();

  MessageSteps& steps_;
  PendingMessages& pending_;
  GroupLookahead& ahead_;
  bool skipped_ = false;   // ahead_ has skipped the groups that are already pending
  bool seen_all_ = false;  // no further group can begin for now
};

}  // namespace hccl::node
