// SPDX-License-Identifier: Apache-2.0
#include "planner/schedule_cache.h"

namespace hccl::planner {

const schedule::Schedule& ScheduleCache::get(const algorithms::Algorithm& algorithm,
                                             const schedule::Shape& shape) {
  auto& found = schedules_[&algorithm][shape];
  if (!found) found = std::make_unique<schedule::Schedule>(algorithm.build(shape));
  return *found;
}

}  // namespace hccl::planner
