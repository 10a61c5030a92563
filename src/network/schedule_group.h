// SPDX-License-Identifier: Apache-2.0
// The ranks that run a schedule together: all ranks of a communicator, or some, such as a column.
#pragma once

#include "planner/planner.h"
#include "planner/schedule_cache.h"

#include <utility>
#include <vector>

namespace hccl::network {

// A group's plans number its ranks from 0. Thread safety: one thread at a time.
class ScheduleGroup {
 public:
  // Creates the group of all ranks of a communicator. `rank` is this rank's number. The planner
  // must outlive the group.
  ScheduleGroup(const planner::Planner& planner, int rank)
      : planner_(planner), rank_(rank), schedules_(planner) {}
  // Creates a group of some ranks. `members` are their numbers in the communicator; this rank is
  // members[rank].
  ScheduleGroup(const planner::Planner& planner, std::vector<int> members, int rank)
      : planner_(planner), members_(std::move(members)), rank_(rank), schedules_(planner) {}

  [[nodiscard]] const planner::Planner& planner() const { return planner_; }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return planner_.topology().ranks(); }
  // Returns the number, in the communicator, of the rank at position `place` of a schedule.
  [[nodiscard]] int number_at(Collective collective, int place) const {
    const int rank = planner_.rank_at(collective, place);
    return members_.empty() ? rank : members_[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] const schedule::Schedule& schedule(const planner::Plan& plan,
                                                   const schedule::Shape& shape) {
    return schedules_.get(plan, shape);
  }

 private:
  const planner::Planner& planner_;
  const std::vector<int> members_;  // empty: all ranks
  const int rank_;
  planner::ScheduleCache schedules_;
};

}  // namespace hccl::network
