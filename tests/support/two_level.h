// SPDX-License-Identifier: Apache-2.0
// Interprets the parts of a call between nodes (multinode/call_parts.h) on all ranks, with the
// scalar fold.
#pragma once

#include "call/collective_call.h"
#include "interpreter.h"
#include "planner/topology.h"

namespace hccl::test {

// Returns all ranks' receive buffers after the parts of `call` have run. Ignores the buffer
// addresses in `call`. `inputs` holds the send buffers of all ranks. Requires
// multinode::CallParts::can_divide().
[[nodiscard]] Words interpret_parts(const planner::Topology& topology, const CollectiveCall& call,
                                    bool in_place, const Words& inputs);

}  // namespace hccl::test
