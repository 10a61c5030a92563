// SPDX-License-Identifier: Apache-2.0
// A validated request to send to or receive from one rank, as it waits on a stream.
#pragma once

#include "base/waiter.h"
#include "reduce/reduce.h"

#include <hccl_types.h>

#include <cstdint>
#include <span>
#include <string>

namespace hccl::node {

enum class Direction : std::uint8_t { send = 1, receive };

struct PointToPoint {
  Direction direction = Direction::send;
  std::uint8_t type = 0;  // hcclDataType_t
  std::int32_t peer = -1;
  std::uint64_t count = 0;    // elements
  std::uint64_t address = 0;  // device address
  std::uint64_t order = 0;    // of the call within its group
  std::uint64_t number = 0;   // among those of the same direction with this peer, from 0

  [[nodiscard]] std::uint64_t bytes() const {
    return count * reduce::element_size(static_cast<hcclDataType_t>(type));
  }
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

// "send(1025, float) to rank 5", "recv(...) from rank 5"
[[nodiscard]] std::string describe(const PointToPoint& call);

}  // namespace hccl::node
