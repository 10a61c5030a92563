// SPDX-License-Identifier: Apache-2.0
// Compares the calls that the ranks have posted, before anything is written, and words the error of
// a mismatch with the names of the odd ranks.
#pragma once

#include "call/collective_call.h"
#include "node/control_block.h"
#include "node/lane.h"

#include <cstdint>
#include <string>

namespace hccl::node {

// Returns whether all ranks have posted the same call as this one to the lane's current operation.
// Call once all have posted.
[[nodiscard]] bool calls_match(const Lane& lane, const CollectiveCall& call, int ranks);
// Returns the error text of calls that do not match.
[[nodiscard]] std::string mismatch_text(const Lane& lane, int ranks);

// Returns what `rank` has posted to operation `number` of the lane with that ordinal, which this
// rank may not have called; null if it has posted nothing.
[[nodiscard]] const Slot* find_slot(const ControlBlock& control, std::uint32_t ordinal,
                                    std::uint32_t number, int rank);
// Returns the calls of those ranks that have posted: "ranks 0-2,5 barrier()".
[[nodiscard]] std::string posted_calls_text(const ControlBlock& control, std::uint32_t ordinal,
                                            std::uint32_t number);

}  // namespace hccl::node
