// SPDX-License-Identifier: Apache-2.0
// Computes, without the library, the elements that a collective must leave in the receive buffer of
// each rank. Reductions fold the inputs in rank order; a library that uses another order may get
// other rounding errors (see rounding.h). The accumulator of half and bfloat16 is float.
#pragma once

#include "collective.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace hccl_perf {

// One checked run of a collective on one rank.
struct Expectation {
  const Collective* collective = nullptr;
  DataType type{};
  Reduction reduction{};
  int root = 0;
  bool in_place = false;
  int rank = 0;
  int ranks = 1;
  std::uint64_t run = 0;  // the InputKey::run of the inputs
  Counts counts{};
};

// The number of elements in a block of a reduction. A block fits in the L1 cache.
inline constexpr std::size_t kReductionBlock = 1024;

// Returns the index, within each rank's input, of the element that is reduced into the first
// element of the receive buffer. Returns nothing if this rank receives no reduced data.
[[nodiscard]] std::optional<std::uint64_t> first_reduced_input(const Expectation& expectation);

// Writes the expected elements [first, first + count) of the rank's receive buffer to `out`.
void fill_expected(const Expectation& expectation, std::uint64_t first, std::size_t count,
                   void* out);

// Returns the number of elements of `size` bytes that differ between two arrays of `count`
// elements.
[[nodiscard]] std::uint64_t count_differences(const void* found, const void* expected,
                                              std::size_t count, std::size_t size);

}  // namespace hccl_perf
