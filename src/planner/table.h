// SPDX-License-Identifier: Apache-2.0
// The algorithm of a call for which none is forced: data, not code.
#pragma once

#include "algorithms/catalogue.h"

#include <cstdint>
#include <string>

namespace hccl::planner {

// Returns the table's choice for `ranks` that all reach each other alike. `bytes`: of the message,
// or of one block.
[[nodiscard]] const algorithms::Algorithm& algorithm_for(Collective collective, std::uint64_t bytes,
                                                         int ranks);

// Returns the bounds of the row that algorithm_for() finds: "the table has it up to 16384 B and 8
// ranks".
[[nodiscard]] std::string row_text(Collective collective, std::uint64_t bytes, int ranks);

// Returns whether an all-reduce between even nodes of several ranks is hierarchical.
[[nodiscard]] bool is_hierarchical(std::uint64_t bytes, int ranks);

}  // namespace hccl::planner
