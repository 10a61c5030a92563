// SPDX-License-Identifier: Apache-2.0
// Formats the plan of a call as text for users or as JSON.
#pragma once

#include "call/backend.h"

#include <string>

namespace hccl::comm {

// Returns a headline and the steps of `rank`. If request.as_json is set, returns one JSON object on
// one line.
[[nodiscard]] std::string plan_text(const PlanRequest& request, const PlanSteps& plan, int rank,
                                    int ranks);

}  // namespace hccl::comm
