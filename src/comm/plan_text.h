// SPDX-License-Identifier: Apache-2.0
// How a call would run, for people and for programs.
#pragma once

#include "call/backend.h"

#include <string>

namespace hccl::comm {

// Writes the steps of `rank` below a headline; as JSON, one object on one line.
[[nodiscard]] std::string plan_text(const PlanRequest& request, const PlanSteps& plan, int rank,
                                    int ranks);

}  // namespace hccl::comm
