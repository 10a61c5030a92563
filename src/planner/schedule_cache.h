// SPDX-License-Identifier: Apache-2.0
// Caches schedules by algorithm and shape, so that each schedule is built only once.
#pragma once

#include "planner/planner.h"

#include <map>
#include <memory>
#include <unordered_map>

namespace hccl::planner {

// The schedules of one group of ranks on one stream. The planner must outlive the cache. Thread
// safety: one thread at a time.
class ScheduleCache {
 public:
  explicit ScheduleCache(const Planner& planner) : planner_(planner) {}

  // Returns the schedule for a shape of the plan. The schedule is valid until the cache is
  // destroyed.
  [[nodiscard]] const schedule::Schedule& get(const Plan& plan, const schedule::Shape& shape);

 private:
  using ByShape = std::unordered_map<schedule::Shape, std::unique_ptr<schedule::Schedule>>;

  const Planner& planner_;
  std::map<const algorithms::Algorithm*, ByShape> schedules_;
};

}  // namespace hccl::planner
