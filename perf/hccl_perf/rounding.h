// SPDX-License-Identifier: Apache-2.0
// Compares results with the expected ones. Floating-point sums, products and averages may differ by
// rounding errors if they are folded in a different order; all other results must be bit-identical.
#pragma once

#include "expected.h"

#include <cstddef>
#include <cstdint>

namespace hccl_perf {

struct Agreement {
  std::uint64_t wrong = 0;    // number of wrong elements
  std::uint64_t rounded = 0;  // number of elements that are correct but not bit-identical

  void add(const Agreement& other) {
    wrong += other.wrong;
    rounded += other.rounded;
  }
};

// Compares elements [first, first + count) of the rank's receive buffer (`found`) with those that
// fill_expected() has computed (`expected`).
[[nodiscard]] Agreement compare_elements(const Expectation& expectation, std::uint64_t first,
                                         std::size_t count, const void* found,
                                         const void* expected);

}  // namespace hccl_perf
