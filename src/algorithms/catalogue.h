// SPDX-License-Identifier: Apache-2.0
// All algorithms, with their names, bounds and knobs.
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

// How the planner may cut a large message for an algorithm.
struct Knobs {
  std::uint32_t channels = 1;  // at most
  bool pipelined = false;      // cuts its message into Shape::pipeline chunks
};

struct Algorithm {
  std::string_view name;
  Collective collective;
  // A hierarchical algorithm's builder and bound are those of the algorithm that it uses across
  // nodes (hierarchical.h).
  Schedule (*build)(const Shape&);
  schedule::Bound (*bound_at)(const Scale&);
  Knobs knobs{};
  std::string_view across_nodes{};  // the algorithm across nodes; empty: not hierarchical

  [[nodiscard]] bool hierarchical() const { return !across_nodes.empty(); }
  [[nodiscard]] schedule::Bound bound(const Shape& shape) const;
};

// Returns all algorithms, the flat ones first. An index identifies an algorithm between ranks.
[[nodiscard]] std::span<const Algorithm> catalogue();
// Returns those that are not hierarchical: their schedules follow from the shape alone.
[[nodiscard]] std::span<const Algorithm> flat();

// Returns the first algorithm of that name for the collective, or null.
[[nodiscard]] const Algorithm* find(std::string_view name, Collective collective);

// Returns the hierarchical all-reduce that uses `rails`, a flat one, across nodes.
[[nodiscard]] const Algorithm& hierarchical_over(const Algorithm& rails);

}  // namespace hccl::algorithms
