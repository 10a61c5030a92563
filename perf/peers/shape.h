// SPDX-License-Identifier: Apache-2.0
// The buffers that a command needs on a rank, and the known inputs and results that verify a
// collective.
#pragma once

#include "command.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace peers {

// The numbers of float elements that a collective reads and writes on each rank. The root is rank
// 0.
struct Shape {
  std::size_t send_count = 0;  // elements of this rank's input
  std::size_t recv_count = 0;  // elements of this rank's output
  std::size_t call_count = 0;  // the count argument of MPI's call
  // For in-place calls, in elements: the offset of an all_gather's input in the output, or of a
  // reduce_scatter's output in the input.
  std::size_t in_place_offset = 0;
};

[[nodiscard]] Shape shape_of(const Command& command, int rank, int ranks);

// Returns the number of elements that a buffer needs to hold the input or the output.
[[nodiscard]] std::size_t buffer_count(const Shape& shape);

// Returns the input of `rank`: small integers, so that sums are exact in any order.
[[nodiscard]] std::vector<float> make_input(const Shape& shape, int rank);

// Poisons `recv`, and writes the input of `rank` to the buffer from which an MPI-like call reads
// it: `recv` for calls in place, else `send`. For an in-place broadcast or reduce, only the root's
// input is in `recv`.
void place_input(const Command& command, int rank, int ranks, std::span<float> send,
                 std::span<float> recv);

// Fills a buffer of `rank` for a timed run. Uses zeros if repeated sums in place would overflow.
// Otherwise uses random mantissas, because some machines write zeros up to twice as fast.
void fill_for_timing(const Command& command, int rank, std::span<float> buffer);

// Returns the number of elements of `output` that differ from the result of the collective on
// `rank`.
[[nodiscard]] std::uint64_t count_wrong(const Command& command, int rank, int ranks,
                                        std::span<const float> output);

// A value that never occurs in a correct result.
inline constexpr float kPoison = -12345.0F;

}  // namespace peers
