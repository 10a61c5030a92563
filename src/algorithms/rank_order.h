// SPDX-License-Identifier: Apache-2.0
// Reduces, in rank order, the data that every rank of a group sends to this rank. The same order
// applies within a node (docs/explanation/numerics.md).
#pragma once

#include "schedule/builder.h"

namespace hccl::algorithms {

struct RankGroup {
  std::int32_t first = 0;  // the first of `count` consecutive ranks
  std::int32_t count = 0;
};

// Adds the receives that set `into` to the reduction of `own` and the data of the group's other
// ranks. If `same_memory` (`own` and `into` are the same memory), the reduction of the lower ranks'
// data is kept in scratch, from slot 0 onwards.
void receive_in_rank_order(schedule::ScheduleBuilder& builder, std::int32_t rank,
                           const RankGroup& group, const schedule::Span& into,
                           const schedule::Span& own, bool same_memory);

}  // namespace hccl::algorithms
