// SPDX-License-Identifier: Apache-2.0
// Begins the groups of sends and receives behind the one whose turn it is: ranks that share a core
// then take turns once in many groups, and others do not wait for the news of each.
#pragma once

#include "call/lookahead.h"
#include "call/point_to_point.h"
#include "node/message_steps.h"
#include "node/pending_messages.h"

#include <span>

namespace hccl::node {

// Does not merge groups: each one is complete on its own turn.
class ExchangeLookahead {
 public:
  ExchangeLookahead(MessageSteps& steps, PendingMessages& pending, GroupLookahead& ahead)
      : steps_(steps), pending_(pending), ahead_(ahead) {}

  // Tells the senders of messages that have not come yet that their messages are awaited. Call
  // while the current group waits.
  void announce_awaited() const { announce_awaited(pending_.current()); }
  // Offers and takes messages of the groups behind. Returns whether there were any. Throws Error.
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
  bool skipped_ = false;   // the groups that are pending
  bool seen_all_ = false;  // no other group can begin for now
};

}  // namespace hccl::node
