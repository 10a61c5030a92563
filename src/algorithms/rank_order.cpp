// SPDX-License-Identifier: Apache-2.0
// Builds the fold ((x0 + x1) + x2) + ..., where xi is the data of the group's i-th rank.
#include "algorithms/rank_order.h"

namespace hccl::algorithms {

using schedule::Span;

void receive_in_rank_order(schedule::ScheduleBuilder& builder, std::int32_t rank,
                           const RankGroup& group, const Span& into, const Span& own,
                           bool same_memory) {
  const std::int32_t below = rank - group.first;
  Span sum = into;
  if (same_memory && below > 1) sum = schedule::scratch(0, own.first_chunk, own.chunk_count);
  if (group.count == 1 && !same_memory) builder.copy(into, own);
  for (std::int32_t i = 0; i < group.count; ++i) {
    const std::int32_t peer = group.first + i;
    if (peer == rank) {
      if (below > 1) builder.fold(into, same_memory ? sum : own);
      sum = into;
    } else if (i == 0 && below > 1) {
      builder.receive(peer, sum);
    } else if (i == 0 || (i == 1 && below == 0)) {  // x0 + x1, one of which is this rank's data
      builder.receive_reduce(peer, into, own);
    } else {
      builder.receive_reduce(peer, sum, sum);
    }
  }
}

}  // namespace hccl::algorithms
