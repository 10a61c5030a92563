// SPDX-License-Identifier: Apache-2.0
// All ranks' schedules for one call in one channel.
#pragma once

#include "schedule/schedule.h"
#include "schedule/shape.h"

#include <string>
#include <vector>

namespace hccl::test {

struct AllRanks {
  std::vector<schedule::Shape> shapes;
  std::vector<schedule::Schedule> schedules;
};

// Builds the schedule of every rank with build(shape). If `mixed` is true, every third rank runs in
// place and the other ranks out of place.
template <class Build>
AllRanks build_all(const schedule::Shape& shape, const Build& build, bool mixed = false) {
  AllRanks all;
  for (std::int32_t rank = 0; rank < shape.rank_count; ++rank) {
    schedule::Shape own = shape;
    own.rank = rank;
    if (mixed) own.in_place = (rank + shape.root) % 3 == 0;
    all.shapes.push_back(own);
    all.schedules.push_back(build(own));
  }
  return all;
}

[[nodiscard]] inline std::string describe(const schedule::Shape& shape) {
  return std::string(name_of(shape.collective)) + " of " + std::to_string(shape.rank_count) +
         " ranks, root " + std::to_string(shape.root) + ", channel " +
         std::to_string(shape.channel) + " of " + std::to_string(shape.channels) + ", pipeline " +
         std::to_string(shape.pipeline) + (shape.in_place ? ", in place" : "");
}

}  // namespace hccl::test
