// SPDX-License-Identifier: Apache-2.0
// Interprets the schedules of all ranks on real elements with the scalar fold. The results are the
// bits that every execution of these schedules must produce.
#pragma once

#include "all_ranks.h"
#include "scalar_fold.h"

namespace hccl::test {

// One vector of words (scalar_fold.h) per rank.
using Words = std::vector<std::vector<std::uint64_t>>;

// Returns the output of each rank, which is empty for a rank without output. `channels` holds the
// schedules of every channel, `count` is the number of elements per block, and `alignment` is
// passed to schedule::Chunking. Rounds to the type after every fold of two elements. For an
// average, prescales the inputs if is_prescaled(type), and divides once the sum is complete. Throws
// std::runtime_error if the schedules do not complete, or if a message and the span that receives
// it differ in length.
[[nodiscard]] Words interpret(const std::vector<AllRanks>& channels, hcclDataType_t type,
                              hcclRedOp_t operation, const Words& inputs, std::uint64_t count,
                              std::uint32_t alignment);

}  // namespace hccl::test
