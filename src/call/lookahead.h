// SPDX-License-Identifier: Apache-2.0
// Lets a running call look at the calls that are queued behind it on its stream.
#pragma once

#include "base/waiter.h"
#include "call/collective_call.h"
#include "call/point_to_point.h"

#include <cstddef>
#include <span>

namespace hccl {

class StreamLookahead {
 public:
  StreamLookahead() = default;
  virtual ~StreamLookahead() = default;
  StreamLookahead(const StreamLookahead&) = delete;
  StreamLookahead& operator=(const StreamLookahead&) = delete;

  // Returns whether a host thread is blocked on the stream, and therefore queues nothing else.
  [[nodiscard]] virtual bool host_is_waiting() const { return false; }
  // Returns how long the running call may wait for other ranks. With a limited budget, the call may
  // return before it is complete.
  [[nodiscard]] virtual WaitBudget wait_budget() const { return WaitBudget::unlimited; }
};

class CallLookahead : public StreamLookahead {
 public:
  // Returns the next queued call, if it may begin now; each call to next() advances by one call.
  // Returns null if no further call is queued, if the further calls may not begin yet, or if other
  // work is queued before them. After next() has returned null, call it again only if has_next()
  // returns true: otherwise next() would skip that other work.
  [[nodiscard]] virtual const CollectiveCall* next() = 0;
  // Returns whether a collective of the same communicator is next in the queue, even if it may not
  // begin yet.
  [[nodiscard]] virtual bool has_next() const = 0;
};

class GroupLookahead : public StreamLookahead {
 public:
  // Returns whether later groups may begin while earlier groups are still blocked. If this returns
  // false, the next group may begin only when no earlier group can block any longer.
  [[nodiscard]] virtual bool may_begin() = 0;
  // Returns the messages of the next queued group; each call to next() advances by one group.
  // Returns an empty span if no further group is queued or other work is queued before it.
  [[nodiscard]] virtual std::span<const PointToPoint> next() = 0;
  // Advances past `groups` groups, which next() has already returned to an earlier exchange().
  virtual void skip(std::size_t groups) = 0;
};

}  // namespace hccl
