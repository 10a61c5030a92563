// SPDX-License-Identifier: Apache-2.0
// Dissemination barrier: D. Hensgen, R. Finkel and U. Manber, "Two algorithms for barrier
// synchronization", 1988. In step k, counted from 0, rank r signals rank (r + 2^k) modulo n. The
// barrier takes ceil(log2 n) steps.
#include "algorithms/algorithms.h"
#include "algorithms/numbering.h"
#include "schedule/builder.h"

namespace hccl::algorithms {

Schedule dissemination_barrier(const Shape& shape) {
  schedule::ScheduleBuilder builder(shape, 0);
  for (std::int32_t distance = 1; distance < shape.rank_count; distance *= 2) {
    builder.send(rank_at(shape, distance), schedule::kSignal);
    builder.receive(rank_at(shape, -distance), schedule::kSignal);
    builder.end_step();
  }
  return std::move(builder).finish();
}

}  // namespace hccl::algorithms
