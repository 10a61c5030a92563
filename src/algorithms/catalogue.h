// SPDX-License-Identifier: Apache-2.0
// All algorithms, with their names, bounds and knobs.
#pragma once

#include "algorithms/algorithms.h"
#include "schedule/bound.h"

#include <span>
#include <string_view>

namespace hccl::algorithms {

// The values from which a bound is computed.
struct Scale {
  double n = 1;      // number of ranks
  double log_n = 0;  // binary logarithm of n, rounded up
  double m = 1;      // Shape::pipeline
};

// How the planner may divide a large message for the algorithm.
struct Knobs {
  std::uint32_t channels = 1;  // maximum number
  bool pipelined = false;      // the algorithm divides a message into Shape::pipeline chunks
};

struct Algorithm {
  std::string_view name;
  Collective collective;
  // For a hierarchical algorithm, these are the builder and the bound of the algorithm that it runs
  // across nodes (hierarchical.h).
  Schedule (*build)(const Shape&);
  schedule::Bound (*bound_at)(const Scale&);
  Knobs knobs{};
  std::string_view across_nodes{};  // the algorithm across nodes; empty if flat

  [[nodiscard]] bool hierarchical() const { return !across_nodes.empty(); }
  [[nodiscard]] schedule::Bound bound(const Shape& shape) const;
};

// Returns all algorithms, the flat ones first. Ranks identify an algorithm to each other by the
// algorithm's index in this list.
[[nodiscard]] std::span<const Algorithm> catalogue();
// Returns the algorithms that are not hierarchical. Their schedules depend on the shape alone.
[[nodiscard]] std::span<const Algorithm> flat();

// Returns the first algorithm with this name for the collective, or null.
[[nodiscard]] const Algorithm* find(std::string_view name, Collective collective);

// Returns the hierarchical all-reduce that uses the flat algorithm `rails` across nodes.
[[nodiscard]] const Algorithm& hierarchical_over(const Algorithm& rails);

}  // namespace hccl::algorithms
