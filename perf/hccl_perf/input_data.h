// SPDX-License-Identifier: Apache-2.0
// Generates input values with a counter-based generator, so that any rank can compute any element
// of any other rank's input.
#pragma once

#include "data_type.h"

#include <cstddef>
#include <cstdint>

namespace hccl_perf {

// Identifies one rank's input in one checked run.
struct InputKey {
  int rank = 0;
  std::uint64_t run = 0;  // unique among the checked runs of a program
};

// Writes elements [first, first + count) of an input to `out`. Floating-point values have random
// signs, random mantissas, and magnitudes from 2^-16 to 2^16 (half: 2^-7 to 2), so that a different
// order of summation changes the bits of many sums. There are no zeros, NaNs or infinities.
// Integers are uniformly distributed over all bit patterns, so their sums wrap.
void fill_input(const DataType& type, InputKey key, std::uint64_t first, std::size_t count,
                void* out);

// Verification::prepare() poisons memory with this byte. A float or bfloat16 made of such bytes has
// a much smaller magnitude than any input.
inline constexpr unsigned char kPoison = 0xA5;

}  // namespace hccl_perf
