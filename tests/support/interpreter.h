// SPDX-License-Identifier: Apache-2.0
// Runs the schedules of all ranks on real elements, one at a time with the scalar fold: the bits
// that an execution of the same schedules must give.
#pragma once

#include "all_ranks.h"
#include "scalar_fold.h"

namespace hccl::test {

// Elements as words (scalar_fold.h), a vector for each rank.
using Words = std::vector<std::vector<std::uint64_t>>;

// channels: the schedules of each channel, all channels there are. count: elements of the message,
// or of one block; alignment: as Chunking takes it. Every fold of two elements is rounded to the
// type; an average is the sum, divided where it is complete. The outputs, empty on a rank without
// one. Throws std::runtime_error if the schedules do not complete.
[[nodiscard]] Words interpret(const std::vector<AllRanks>& channels, hcclDataType_t type,
                              hcclRedOp_t operation, const Words& inputs, std::uint64_t count,
                              std::uint32_t alignment);

}  // namespace hccl::test
