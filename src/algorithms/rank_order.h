// SPDX-License-Identifier: Apache-2.0
// Reducing what every rank of a group sends to this one, in the order of the ranks: the order of
// the engine inside a node (docs/explanation/numerics.md), whichever rank does it.
#pragma once

#include "schedule/builder.h"

namespace hccl::algorithms {

struct RankGroup {
  std::int32_t first = 0;  // ranks, one after the other
  std::int32_t count = 0;
};

// Adds the receives: into = own and what the others of the group send. If `own` is the memory of
// `into`, what comes from the ranks below waits in scratch, from slot 0 on.
void receive_in_rank_order(schedule::ScheduleBuilder& builder, std::int32_t rank,
                           const RankGroup& group, const schedule::Span& into,
                           const schedule::Span& own, bool same_memory);

}  // namespace hccl::algorithms
