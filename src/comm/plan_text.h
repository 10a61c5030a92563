// SPDX-License-Identifier: Apache-2.0
// Formats the plan of a call, for people and for programs.
#pragma once

#include "call/backend.h"

#include <string>

namespace hccl::comm {

// Returns the steps of `rank` below a headline, or one JSON object on one line.
[[nodiscard]] std::string plan_text(const PlanRequest& request, const PlanSteps& plan, int rank,
                                    int ranks);

}  // namespace hccl::comm
