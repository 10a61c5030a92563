// SPDX-License-Identifier: Apache-2.0
// Comparing results with expected ones. Reductions of floating-point types by sum, product or
// average may differ by the rounding that another order of folding the ranks' inputs gives; all
// else must be the same bit by bit.
#pragma once

#include "expected.h"

#include <cstddef>
#include <cstdint>

namespace hccl_perf {

struct Agreement {
  std::uint64_t wrong = 0;    // elements
  std::uint64_t rounded = 0;  // elements that are right, but not bit by bit

  void add(const Agreement& other) {
    wrong += other.wrong;
    rounded += other.rounded;
  }
};

// Compares elements [first, first + count) of the rank's receive buffer with `expected`, which
// fill_expected() made.
[[nodiscard]] Agreement compare_elements(const Expectation& expectation, std::uint64_t first,
                                         std::size_t count, const void* found,
                                         const void* expected);

}  // namespace hccl_perf
