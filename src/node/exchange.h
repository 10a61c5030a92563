// SPDX-License-Identifier: Apache-2.0
// Runs the sends and receives of one group. Each call progresses as soon as its peer is ready, so
// the order of the calls in the group does not matter.
#pragma once

#include "call/lookahead.h"
#include "call/point_to_point.h"
#include "node/exchange_lookahead.h"
#include "node/exchange_wait.h"
#include "node/message_steps.h"
#include "node/node_segment.h"
#include "node/pending_messages.h"
#include "node/stall_monitor.h"
#include "node/stream_place.h"

#include <cstddef>
#include <span>

namespace hccl::node {

class Exchange {
 public:
  // See Engine::exchange(). `steps`: performs the steps of this group's messages.
  Exchange(NodeSegment& node, StallMonitor& stalls, MessageSteps& steps, const StreamPlace& place,
           std::span<const PointToPoint> calls, GroupLookahead& ahead);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Runs the calls. Blocks until all calls are complete, and returns true. Returns false if the
  // wait budget is used up, unless a message of the group is being copied in pieces. Throws Error
  // if a call fails.
  bool run();

 private:
  bool advance_current();
  [[nodiscard]] bool may_return_early() const;

  NodeSegment& node_;
  GroupLookahead& ahead_;
  PendingMessages& pending_;
  MessageSteps& steps_;
  ExchangeLookahead lookahead_;
  ExchangeWait wait_;
  std::size_t remaining_;  // calls that are not complete
  bool failed_ = true;     // set to false when run() returns
};

}  // namespace hccl::node
