// SPDX-License-Identifier: Apache-2.0
// How a call would run, for people and for programs.
#pragma once

#include "planner/planner.h"

#include <string>

namespace hccl::comm {

// The steps of the request's rank in every channel, by the program's numbers of ranks. `transport`:
// by which ways. As text, a line for each step; as JSON, one object on one line.
[[nodiscard]] std::string plan_text(const planner::Planner& planner,
                                    const planner::Request& request, const std::string& transport,
                                    bool json);

// The same of a call that needs no steps between ranks, for all are on one node.
[[nodiscard]] std::string node_plan_text(const planner::Request& request, int ranks, bool json);

}  // namespace hccl::comm
