// SPDX-License-Identifier: Apache-2.0
#include "planner/schedule_cache.h"

namespace hccl::planner {

const schedule::Schedule& ScheduleCache::get(const Plan& plan, const schedule::Shape& shape) {
  auto& found = schedules_[plan.algorithm][shape];
  if (!found) found = std::make_unique<schedule::Schedule>(planner_.build(plan, shape));
  return *found;
}

}  // namespace hccl::planner
