// SPDX-License-Identifier: Apache-2.0
// The position of a running call in its stream, and a view of the calls that are queued behind it.
#pragma once

#include "base/waiter.h"
#include "call/collective_call.h"
#include "call/point_to_point.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace hccl::node {

class Lane;
class PendingMessages;

// The position of sends and receives in their stream: before the next collective of a lane.
struct StreamPlace {
  std::uint32_t ordinal = 0;           // of the lane that the stream has, or would get now
  const Lane* lane = nullptr;          // null if no collective has been queued on the stream
  PendingMessages* pending = nullptr;  // of this stream and communicator alone
};

// Gives a running call a view of its stream.
class CallLookahead {
 public:
  CallLookahead() = default;
  virtual ~CallLookahead() = default;
  CallLookahead(const CallLookahead&) = delete;
  CallLookahead& operator=(const CallLookahead&) = delete;

  // Returns the calls behind it, in order, one at each call; null if no other follows for now or
  // another kind of work comes first.
  [[nodiscard]] virtual const CollectiveCall* next() = 0;
  // Returns whether a host thread blocks on the stream, and so queues nothing else.
  [[nodiscard]] virtual bool host_is_waiting() const { return false; }
  // Returns how long the call may wait for its peers. Unless it is unlimited, the call may return
  // without being complete.
  [[nodiscard]] virtual WaitBudget wait_budget() const { return WaitBudget::unlimited; }
};

// Gives a running group a view of its stream.
class GroupLookahead {
 public:
  GroupLookahead() = default;
  virtual ~GroupLookahead() = default;
  GroupLookahead(const GroupLookahead&) = delete;
  GroupLookahead& operator=(const GroupLookahead&) = delete;

  // Returns whether the groups behind may begin although earlier groups may still block. Once no
  // earlier group can block they may begin in any case.
  [[nodiscard]] virtual bool may_begin() = 0;
  // Returns the groups behind it, in order, one at each call; empty if no other follows for now or
  // another kind of work comes first.
  [[nodiscard]] virtual std::span<const PointToPoint> next() = 0;
  // Skips groups that next() has returned before.
  virtual void skip(std::size_t groups) = 0;
  // Returns whether a host thread blocks on the stream, and so queues nothing else.
  [[nodiscard]] virtual bool host_is_waiting() const = 0;
  // Returns how long the group may wait for its peers. Unless it is unlimited, the group may return
  // without being complete.
  [[nodiscard]] virtual WaitBudget wait_budget() const { return WaitBudget::unlimited; }
};

}  // namespace hccl::node
