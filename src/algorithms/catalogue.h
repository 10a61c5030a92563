// SPDX-License-Identifier: Apache-2.0
// All algorithms, by the names that users know them by.
#pragma once

#include "algorithms/algorithms.h"
#include "schedule/bound.h"

#include <span>
#include <string_view>

namespace hccl::algorithms {

// The arguments of a bound.
struct Scale {
  double n = 1;      // ranks
  double log_n = 0;  // rounded up, to base 2
  double m = 1;      // Shape::pipeline
};

struct Algorithm {
  std::string_view name;
  Collective collective;
  Schedule (*build)(const Shape&);
  schedule::Bound (*bound_at)(const Scale&);

  [[nodiscard]] schedule::Bound bound(const Shape& shape) const;
};

[[nodiscard]] std::span<const Algorithm> catalogue();

// Null where there is none of that name for the collective.
[[nodiscard]] const Algorithm* find(std::string_view name, Collective collective);

}  // namespace hccl::algorithms
