// SPDX-License-Identifier: Apache-2.0
// The meaning of one command for a rank's buffers, and the numbers that verify a collective: known
// inputs, known result.
#pragma once

#include "command.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace peers {

// Elements (of float) that a collective reads and writes at each rank. The root is rank 0.
struct Shape {
  std::size_t send_count = 0;  // input of this rank
  std::size_t recv_count = 0;  // output of this rank
  std::size_t call_count = 0;  // of the whole, or of one rank's part
  // Where the input of `rank` lies inside the output when in place (all_gather), or the output
  // inside the input (reduce_scatter); elements from the start of the larger one.
  std::size_t in_place_offset = 0;
};

[[nodiscard]] Shape shape_of(const Command& command, int rank, int ranks);

// The larger of input and output: what an in-place call needs.
[[nodiscard]] std::size_t buffer_count(const Shape& shape);

// The input of `rank`. Small integers, so that sums are exact in any order.
[[nodiscard]] std::vector<float> make_input(const Shape& shape, int rank);

// Fills a buffer of `rank` with what is moved while the clock runs: random mantissas, because some
// machines write zeros faster (twice as fast where this was found); zeros where sums are repeated
// in place, which would overflow.
void fill_for_timing(const Command& command, int rank, std::span<float> buffer);

// Elements of `output` that differ from what the collective must give at `rank`.
[[nodiscard]] std::uint64_t count_wrong(const Command& command, int rank, int ranks,
                                        std::span<const float> output);

// It is never a right result.
inline constexpr float kPoison = -12345.0F;

}  // namespace peers
