// SPDX-License-Identifier: Apache-2.0
// The values that a collective must leave in every element of every rank, computed without the
// library: a scalar definition of each collective, folding in rank order with a float accumulator
// for half and bfloat16.
#pragma once

#include "collective.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace hccl_perf {

// One checked run of one collective, seen from one rank.
struct Expectation {
  const Collective* collective = nullptr;
  DataType type{};
  Reduction reduction{};
  int root = 0;
  bool in_place = false;
  int rank = 0;
  int ranks = 1;
  std::uint64_t run = 0;  // the inputs' InputKey::run
  Counts counts{};
};

// Reductions are computed in blocks of this many elements, which stay in the first-level cache.
inline constexpr std::size_t kReductionBlock = 1024;

// The element of the ranks' inputs that the first element of the receive buffer is the reduction
// of; none if this rank receives no reduction.
[[nodiscard]] std::optional<std::uint64_t> first_reduced_input(const Expectation& expectation);

// Writes the expected elements [first, first + count) of the rank's receive buffer to `out`.
void fill_expected(const Expectation& expectation, std::uint64_t first, std::size_t count,
                   void* out);

// Elements of `size` bytes that differ between two arrays of `count`.
[[nodiscard]] std::uint64_t count_differences(const void* found, const void* expected,
                                              std::size_t count, std::size_t size);

}  // namespace hccl_perf
