// SPDX-License-Identifier: Apache-2.0
// A view of the calls that are queued after a running call on its stream.
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

  // Returns whether a host thread blocks on the stream, and therefore queues nothing else.
  [[nodiscard]] virtual bool host_is_waiting() const { return false; }
  // Returns how long the work may wait for its peers. Unless the budget is unlimited, the work may
  // return before it is complete.
  [[nodiscard]] virtual WaitBudget wait_budget() const { return WaitBudget::unlimited; }
};

class CallLookahead : public StreamLookahead {
 public:
  // Returns the following calls that may begin now, one at each call of next(). Returns null if
  // there is no further one for now or another kind of work comes first.
  [[nodiscard]] virtual const CollectiveCall* next() = 0;
  // Returns whether a call is queued directly after the running one, even if it may not begin yet.
  [[nodiscard]] virtual bool has_next() const = 0;
};

class GroupLookahead : public StreamLookahead {
 public:
  // Returns whether the following groups may begin even though earlier groups may still block. When
  // no earlier group can block, the following groups may always begin.
  [[nodiscard]] virtual bool may_begin() = 0;
  // Returns the following groups, one at each call of next(). Returns an empty span if there is no
  // further one for now or another kind of work comes first.
  [[nodiscard]] virtual std::span<const PointToPoint> next() = 0;
  // Skips groups that next() has already returned.
  virtual void skip(std::size_t groups) = 0;
};

}  // namespace hccl
