// SPDX-License-Identifier: Apache-2.0
// A message from rank 0 to rank 1. One step.
#include "algorithms/algorithms.h"
#include "schedule/builder.h"

namespace hccl::algorithms {

Schedule point_to_point(const Shape& shape) {
  schedule::ScheduleBuilder builder(shape, 1);
  if (shape.rank == 0 && shape.rank_count > 1) builder.send(1, schedule::input(0));
  if (shape.rank == 1) builder.receive(0, schedule::output(0));
  return std::move(builder).finish();
}

}  // namespace hccl::algorithms
