// SPDX-License-Identifier: Apache-2.0
// Schedules that have been built, by algorithm and shape: a call of a shape seen before finds its
// own.
#pragma once

#include "planner/planner.h"

#include <map>
#include <memory>
#include <unordered_map>
#include <utility>

namespace hccl::planner {

// The schedules of one lane, used by one thread at a time. The planner outlives it.
class ScheduleCache {
 public:
  explicit ScheduleCache(const Planner& planner) : planner_(planner) {}

  // Returns the schedule for a shape of the plan. Valid until the cache is destroyed.
  [[nodiscard]] const schedule::Schedule& get(const Plan& plan, const schedule::Shape& shape);

 private:
  using ByShape = std::unordered_map<schedule::Shape, std::unique_ptr<schedule::Schedule>>;

  const Planner& planner_;
  std::map<std::pair<const algorithms::Algorithm*, bool>, ByShape> schedules_;
};

}  // namespace hccl::planner
