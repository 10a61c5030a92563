// SPDX-License-Identifier: Apache-2.0
// Compares the calls that the ranks have posted, before any result is written, and formats the
// error text of a mismatch.
#pragma once

#include "call/collective_call.h"
#include "node/collective_operation.h"
#include "node/control_block.h"
#include "node/lane.h"
#include "node/node_segment.h"

#include <cstdint>
#include <string>

namespace hccl::node {

// Returns whether a posted slot describes the same program call as `call`. If `call` is one of the
// parts into which a back end divides a program call, the slot describes that whole call.
[[nodiscard]] bool call_matches(const Slot& slot, const CollectiveCall& call);
// Returns whether call_matches() is true for the slots of all ranks in the lane's current
// operation. Requires that all ranks have posted.
[[nodiscard]] bool calls_match(const Lane& lane, const CollectiveCall& call, int ranks);
// Returns whether is_on_host() is true for the buffers of all ranks. Requires that all ranks have
// posted.
[[nodiscard]] bool all_use_host_memory(const NodeSegment& node, const CollectiveOperation& op);
// Returns the error text for mismatched calls. Lists the largest group of ranks with equal calls
// last. Requires that all ranks have posted.
[[nodiscard]] std::string mismatch_text(const NodeSegment& node, const CollectiveOperation& op);

// Fails the communicator because the posted calls do not match. If the operation has an observer,
// first blocks for at most a second while the observer asks the ranks of other nodes which rank's
// call differs.
void raise_mismatch(NodeSegment& node, const CollectiveOperation& op);

// Returns the slot of `rank` for operation `number` of the lane `ordinal`, or null if that rank has
// not posted its part. Works even if this rank has not used that lane yet.
[[nodiscard]] const Slot* find_slot(const ControlBlock& control, std::uint32_t ordinal,
                                    std::uint32_t number, int rank);
// Returns the posted calls, each with the ranks that made it: "ranks 0-2,5 barrier()". Omits ranks
// that have not posted.
[[nodiscard]] std::string posted_calls_text(const ControlBlock& control, std::uint32_t ordinal,
                                            std::uint32_t number);

}  // namespace hccl::node
