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

// The stream of a group that runs.
class GroupsAhead {
 public:
  GroupsAhead() = default;
  virtual ~GroupsAhead() = default;
  GroupsAhead(const GroupsAhead&) = delete;
  GroupsAhead& operator=(const GroupsAhead&) = delete;

  // Returns whether they may begin whatever the groups before them wait for. Once those are sure to
  // end they may in any case.
  [[nodiscard]] virtual bool may_begin() = 0;
  // The groups behind it, in order; empty where they end for now or something else stands in
  // between.
  [[nodiscard]] virtual std::span<const PointToPoint> next() = 0;
  // Leaves the next ones out, which have been told before.
  virtual void skip(std::size_t groups) = 0;
  // Returns whether a thread of the program waits for the stream, and so calls nothing else.
  [[nodiscard]] virtual bool attended() const = 0;
  // With which the group waits for its peers; unless it is endless, the group may be left.
  [[nodiscard]] virtual Patience patience() const { return Patience::endless; }
};

// "send(1025, float) to rank 5", "recv(...) from rank 5"
[[nodiscard]] std::string describe(const PointToPoint& call);

}  // namespace hccl::node
