// SPDX-License-Identifier: Apache-2.0
// Reduces the data that every rank of a group sends to this one in the order of the ranks, which is
// also the order within a node (docs/explanation/numerics.md).
#pragma once

#include "schedule/builder.h"

namespace hccl::algorithms {

struct RankGroup {
  std::int32_t first = 0;  // ranks, one after the other
  std::int32_t count = 0;
};

// Adds the receives that set `into` to the reduction of `own` and the data of the group's other
// ranks. If `own` is the memory of `into`, the data of lower ranks waits in scratch, from slot 0
// on.
void receive_in_rank_order(schedule::ScheduleBuilder& builder, std::int32_t rank,
                           const RankGroup& group, const schedule::Span& into,
                           const schedule::Span& own, bool same_memory);

}  // namespace hccl::algorithms
