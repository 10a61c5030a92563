// SPDX-License-Identifier: Apache-2.0
// The hierarchical all-reduce, for nodes with several ranks.
#pragma once

#include "algorithms/catalogue.h"

namespace hccl::algorithms {

// Return the schedule and the bound of a hierarchical all-reduce. `node_sizes` holds the number of
// ranks on each node, at least one; ranks are numbered node by node. `rails` is the all-reduce from
// the catalogue that runs along each rail. A rail consists of the ranks with the same index on
// their nodes: one rank on each node.
[[nodiscard]] Schedule hierarchical_all_reduce(const Shape& shape,
                                               std::span<const std::int32_t> node_sizes,
                                               const Algorithm& rails);
[[nodiscard]] schedule::Bound hierarchical_bound(const Shape& shape,
                                                 std::span<const std::int32_t> node_sizes,
                                                 const Algorithm& rails);

}  // namespace hccl::algorithms
