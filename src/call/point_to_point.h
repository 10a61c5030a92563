// SPDX-License-Identifier: Apache-2.0
// A validated send to, or receive from, one rank, as it is queued on a stream.
#pragma once

#include "reduce/reduce.h"

#include <hccl_types.h>

#include <cstdint>
#include <string>

namespace hccl {

enum class Direction : std::uint8_t { send = 1, receive };

struct PointToPoint {
  Direction direction = Direction::send;
  std::uint8_t type = 0;  // hcclDataType_t
  std::int32_t peer = -1;
  std::uint64_t count = 0;    // elements
  std::uint64_t address = 0;  // of device memory, or of host memory
  std::uint64_t order = 0;    // position of the call within its group
  std::uint64_t number = 0;   // position among the calls with this peer and direction, from 0

  [[nodiscard]] std::uint64_t bytes() const {
    return count * reduce::element_size(static_cast<hcclDataType_t>(type));
  }
};

// Returns a text such as "send(1025, float) to rank 5" or "recv(...) from rank 5".
[[nodiscard]] std::string describe(const PointToPoint& call);

}  // namespace hccl
