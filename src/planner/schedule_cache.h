// SPDX-License-Identifier: Apache-2.0
// Schedules that have been built, by algorithm and shape: a call of a shape seen before finds its
// own.
#pragma once

#include "algorithms/catalogue.h"

#include <map>
#include <memory>
#include <unordered_map>

namespace hccl::planner {

// Of one lane; one thread at a time.
class ScheduleCache {
 public:
  // Good until the cache goes.
  [[nodiscard]] const schedule::Schedule& get(const algorithms::Algorithm& algorithm,
                                              const schedule::Shape& shape);

 private:
  using ByShape = std::unordered_map<schedule::Shape, std::unique_ptr<schedule::Schedule>>;

  std::map<const algorithms::Algorithm*, ByShape> schedules_;
};

}  // namespace hccl::planner
