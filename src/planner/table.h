// SPDX-License-Identifier: Apache-2.0
// Which algorithm a call runs by if nobody forces one: data, not code.
#pragma once

#include "algorithms/catalogue.h"

#include <cstdint>
#include <string>

namespace hccl::planner {

// From the table, for `ranks` that all reach each other alike. `bytes`: of the message, or of one
// block.
[[nodiscard]] const algorithms::Algorithm& algorithm_for(Collective collective, std::uint64_t bytes,
                                                         int ranks);

// The bounds of the row that algorithm_for() finds: "the table has it up to 16384 B and 8 ranks".
[[nodiscard]] std::string row_text(Collective collective, std::uint64_t bytes, int ranks);

// Returns whether an all-reduce between even nodes of several ranks goes by phases, on the nodes
// and across them.
[[nodiscard]] bool is_hierarchical(std::uint64_t bytes, int ranks);

}  // namespace hccl::planner
