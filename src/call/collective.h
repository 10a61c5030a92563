// SPDX-License-Identifier: Apache-2.0
// The collectives, by one numbering in shared memory, on the wire and in schedules.
#pragma once

#include <cstdint>

namespace hccl {

// 0 is none.
enum class Collective : std::uint8_t {
  barrier = 1,
  all_reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  reduce,
  all_to_all,
  point_to_point  // rank 0 sends its message to rank 1
};

// "all_reduce"; of any other number "unknown collective".
[[nodiscard]] const char* name_of(Collective collective);

[[nodiscard]] constexpr bool has_root(Collective collective) {
  return collective == Collective::broadcast || collective == Collective::reduce;
}
[[nodiscard]] constexpr bool reduces(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce ||
         collective == Collective::reduce_scatter;
}
// Return whether the rank's input, or output, is a block for each rank.
[[nodiscard]] constexpr bool has_blocks_in_input(Collective collective) {
  return collective == Collective::reduce_scatter || collective == Collective::all_to_all;
}
[[nodiscard]] constexpr bool has_blocks_in_output(Collective collective) {
  return collective == Collective::all_gather || collective == Collective::all_to_all;
}

}  // namespace hccl
