// SPDX-License-Identifier: Apache-2.0
// Sleeps until a send or receive of the current group can proceed. Fails the communicator when the
// time-out expires, or if a peer will never make the matching call, because the peer has departed
// or waits for this rank in a collective.
#pragma once

#include "base/deadline.h"
#include "call/lookahead.h"
#include "node/message_steps.h"
#include "node/node_segment.h"
#include "node/pending_messages.h"
#include "node/stall_monitor.h"
#include "node/stream_place.h"

#include <string>

namespace hccl::node {

class ExchangeWait {
 public:
  ExchangeWait(NodeSegment& node, StallMonitor& stalls, const StreamPlace& place,
               const MessageSteps& steps, const GroupLookahead& ahead)
      : node_(node),
        place_(place),
        steps_(steps),
        pending_(*place.pending),
        ahead_(ahead),
        timer_(stalls) {}
  ~ExchangeWait();
  ExchangeWait(const ExchangeWait&) = delete;
  ExchangeWait& operator=(const ExchangeWait&) = delete;

  // Checks the peers and the time limits, then blocks until an item of the current group is ready,
  // the communicator has failed, or the next check is due.
  void sleep();

 private:
  [[nodiscard]] bool waits_for(const MessageItem& item) const {
    return item.state != MessageItem::State::done && !steps_.ready(item);
  }
  void check_limits();
  void check_departed(const MessageItem& item) const;
  void check_collectives();
  [[nodiscard]] const MessageItem* find_blocked_by_collective() const;
  [[nodiscard]] std::string delay_text() const;

  NodeSegment& node_;
  const StreamPlace& place_;
  const MessageSteps& steps_;
  PendingMessages& pending_;
  const GroupLookahead& ahead_;
  StallTimer timer_;
  const MessageItem* suspect_ = nullptr;  // the item last found blocked by a collective
  Deadline certain_ = Deadline::never();  // when suspect_ is considered permanently blocked
};

}  // namespace hccl::node
