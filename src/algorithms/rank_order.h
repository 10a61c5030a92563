// SPDX-License-Identifier: Apache-2.0
// Adds receives that reduce the data of a group of ranks in rank order, as calls on a single node
// do (docs/explanation/numerics.md).
#pragma once

#include "schedule/builder.h"

namespace hccl::algorithms {

struct RankGroup {
  std::int32_t first = 0;  // the first of `count` consecutive ranks
  std::int32_t count = 0;
};

// Adds the receives that set `into` to the reduction of `own` and the data of the group's other
// ranks. `same_memory`: whether `own` and `into` are the same memory. If so, the partial result of
// several lower ranks is kept in scratch, from slot 0 onwards.
void receive_in_rank_order(schedule::ScheduleBuilder& builder, std::int32_t rank,
                           const RankGroup& group, const schedule::Span& into,
                           const schedule::Span& own, bool same_memory);

}  // namespace hccl::algorithms
