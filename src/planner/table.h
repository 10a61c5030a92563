// SPDX-License-Identifier: Apache-2.0
// Looks up the algorithm of a call in a table, by message size and number of ranks. The planner
// uses the table unless HCCL_ALGO forces a flat algorithm for the collective.
#pragma once

#include "algorithms/catalogue.h"

#include <cstdint>
#include <string>

namespace hccl::planner {

// Returns the table's choice for a call between `ranks` ranks over uniform links. `bytes` is the
// size of the message, or of one block.
[[nodiscard]] const algorithms::Algorithm& algorithm_for(Collective collective, std::uint64_t bytes,
                                                         int ranks);

// Returns a text with the algorithm and the limits of the row that algorithm_for() finds, such as
// "the table selects one_shot up to 16384 B and 8 ranks".
[[nodiscard]] std::string row_text(Collective collective, std::uint64_t bytes, int ranks);

// Returns whether an all-reduce should be hierarchical. Requires that all nodes have the same
// number of ranks, at least two.
[[nodiscard]] bool is_hierarchical(std::uint64_t bytes, int ranks);

}  // namespace hccl::planner
