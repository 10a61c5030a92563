// SPDX-License-Identifier: Apache-2.0
// The names, builders and bounds of the algorithms. docs/generate.py generates
// docs/reference/algorithms.md from this table, and the tests prove that the schedules stay within
// the bounds.
#include "algorithms/catalogue.h"

#include <algorithm>
#include <array>
#include <bit>

namespace hccl::algorithms {

using schedule::Bound;

namespace {

Bound ring_twice(const Scale& s) {
  return {.steps = 2 * (s.n - 1),
          .hops = 2 * (s.n - 1),
          .sent = 2 * (s.n - 1) / s.n,
          .received = 2 * (s.n - 1) / s.n,
          .peers = 2};
}
Bound ring_once(const Scale& s) {
  return {.steps = s.n - 1, .hops = s.n - 1, .sent = s.n - 1, .received = s.n - 1, .peers = 2};
}
Bound tree_up_and_down(const Scale& s) {
  return {.steps = s.m + 1, .hops = (s.m + 1) * s.log_n, .sent = 3, .received = 3, .peers = 3};
}
Bound tree_down(const Scale& s) {
  return {.steps = 1, .hops = s.log_n, .sent = 2, .received = 1, .peers = 3};
}
Bound tree_up(const Scale& s) {
  return {.steps = 1, .hops = s.log_n, .sent = 1, .received = 2, .peers = 3};
}
Bound along_chain(const Scale& s) {
  return {.steps = 1, .hops = s.n - 1, .sent = 1, .received = 1, .peers = 2};
}
Bound halving_and_doubling(const Scale& s) {
  return {.steps = 2 * s.log_n,
          .hops = 2 * s.log_n,
          .sent = 2 * (s.n - 1) / s.n,
          .received = 2 * (s.n - 1) / s.n,
          .peers = 2 * s.log_n};
}
Bound halving_or_doubling(const Scale& s) {
  return {.steps = s.log_n,
          .hops = s.log_n,
          .sent = s.n - 1,
          .received = s.n - 1,
          .peers = 2 * s.log_n};
}
Bound direct_twice(const Scale& s) {
  return {.steps = 2,
          .hops = 2,
          .sent = 2 * (s.n - 1) / s.n,
          .received = 2 * (s.n - 1) / s.n,
          .peers = s.n - 1};
}
Bound direct_once(const Scale& s) {
  return {.steps = 1, .hops = 1, .sent = s.n - 1, .received = s.n - 1, .peers = s.n - 1};
}
Bound from_root(const Scale& s) {
  return {.steps = 1, .hops = 1, .sent = s.n - 1, .received = 1, .peers = s.n - 1};
}
Bound to_root(const Scale& s) {
  return {.steps = 1, .hops = 1, .sent = 1, .received = s.n - 1, .peers = s.n - 1};
}
Bound one_shot(const Scale& s) {
  return {.steps = 2, .hops = 1, .sent = s.n - 1, .received = s.n - 1, .peers = s.n - 1};
}
Bound in_rounds(const Scale& s) {
  return {.steps = s.n, .hops = s.n, .sent = s.n - 1, .received = s.n - 1, .peers = s.n - 1};
}
Bound dissemination(const Scale& s) {
  return {.steps = s.log_n, .hops = s.log_n, .sent = 0, .received = 0, .peers = 2 * s.log_n};
}

// Each tree carries half of the data.
constexpr Knobs kTwoTrees{.channels = 2, .pipelined = true};
// With several channels, the phases of a hierarchical call overlap.
constexpr Knobs kPhases{.channels = 4};

constexpr std::array kFlat = {
    Algorithm{"ring", Collective::all_reduce, ring_all_reduce, ring_twice},
    Algorithm{"ring", Collective::reduce_scatter, ring_reduce_scatter, ring_once},
    Algorithm{"ring", Collective::all_gather, ring_all_gather, ring_once},
    Algorithm{"tree", Collective::all_reduce, tree_all_reduce, tree_up_and_down, kTwoTrees},
    Algorithm{"tree", Collective::broadcast, tree_broadcast, tree_down, kTwoTrees},
    Algorithm{"tree", Collective::reduce, tree_reduce, tree_up, kTwoTrees},
    Algorithm{"chain", Collective::broadcast, chain_broadcast, along_chain},
    Algorithm{"chain", Collective::reduce, chain_reduce, along_chain},
    Algorithm{"halving_doubling", Collective::all_reduce, halving_doubling_all_reduce,
              halving_and_doubling},
    Algorithm{"halving_doubling", Collective::reduce_scatter, halving_reduce_scatter,
              halving_or_doubling},
    Algorithm{"halving_doubling", Collective::all_gather, doubling_all_gather, halving_or_doubling},
    Algorithm{"direct", Collective::all_reduce, direct_all_reduce, direct_twice},
    Algorithm{"direct", Collective::reduce_scatter, direct_reduce_scatter, direct_once},
    Algorithm{"direct", Collective::all_gather, direct_all_gather, direct_once},
    Algorithm{"direct", Collective::broadcast, direct_broadcast, from_root},
    Algorithm{"direct", Collective::reduce, direct_reduce, to_root},
    Algorithm{"one_shot", Collective::all_reduce, one_shot_all_reduce, one_shot},
    Algorithm{"pairwise", Collective::all_to_all, pairwise_all_to_all, in_rounds},
    Algorithm{"dissemination", Collective::barrier, dissemination_barrier, dissemination}};

constexpr bool is_all_reduce(const Algorithm& algorithm) {
  return algorithm.collective == Collective::all_reduce;
}
constexpr auto kRails = static_cast<std::size_t>(std::ranges::count_if(kFlat, is_all_reduce));

// The flat algorithms, and a hierarchical all-reduce over each flat all-reduce.
constexpr auto kCatalogue = [] {
  std::array<Algorithm, kFlat.size() + kRails> all{};
  auto* next = std::ranges::copy(kFlat, all.begin()).out;
  for (const Algorithm& rails : kFlat) {
    if (!is_all_reduce(rails)) continue;
    *next = rails;
    next->name = "hierarchical";
    next->knobs = kPhases;
    next->across_nodes = rails.name;
    ++next;
  }
  return all;
}();

}  // namespace

Bound Algorithm::bound(const Shape& shape) const {
  if (shape.rank_count == 1) return {.steps = 1};  // a copy
  const auto number = [](std::uint32_t value) { return static_cast<double>(value); };
  const auto log_n = static_cast<std::uint32_t>(std::bit_width(shape.ranks() - 1));
  return bound_at({number(shape.ranks()), number(log_n), number(shape.pipeline)});
}

std::span<const Algorithm> catalogue() { return kCatalogue; }

std::span<const Algorithm> flat() { return catalogue().first(kFlat.size()); }

const Algorithm* find(std::string_view name, Collective collective) {
  for (const Algorithm& algorithm : kCatalogue) {
    if (algorithm.name == name && algorithm.collective == collective) return &algorithm;
  }
  return nullptr;
}

const Algorithm& hierarchical_over(const Algorithm& rails) {
  return *std::ranges::find(kCatalogue, rails.name, &Algorithm::across_nodes);
}

}  // namespace hccl::algorithms
