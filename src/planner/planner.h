// SPDX-License-Identifier: Apache-2.0
// Which algorithm a call between ranks runs by: from a table of sizes, or as HCCL_ALGO says. Pure;
// the same on all ranks.
#pragma once

#include "algorithms/catalogue.h"

#include <cstdint>
#include <string>

namespace hccl::planner {

struct Plan {
  const algorithms::Algorithm* algorithm = nullptr;
  std::uint32_t channels = 1;
  std::uint32_t pipeline = 1;
};

// `bytes`: of the message, or of one block. `forced`: a name of the catalogue, which counts for the
// collectives it offers; empty: none.
[[nodiscard]] Plan make_plan(schedule::Collective collective, std::uint64_t bytes, int ranks,
                             const std::string& forced);

// Throws Error(hcclInvalidArgument) naming HCCL_ALGO and the names there are, unless `name` is one
// or empty.
void check_algorithm(const std::string& name);

}  // namespace hccl::planner
