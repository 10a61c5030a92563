// SPDX-License-Identifier: Apache-2.0
// Waits for other ranks in a collective: polls, then sleeps on the lane's bell. Fails the
// communicator if a rank has departed without posting, when the time-out expires or, if the
// operation has an observer, when the observer ends the call.
#pragma once

#include "base/deadline.h"
#include "base/waiter.h"
#include "node/collective_operation.h"
#include "node/node_segment.h"
#include "node/stall_monitor.h"
#include "node/wait_observer.h"

#include <cstdint>
#include <string>

namespace hccl::node {

class OperationWait {
 public:
  OperationWait(NodeSegment& node, StallMonitor& stalls, const CollectiveOperation& op)
      : node_(node), op_(op), timer_(stalls) {}
  ~OperationWait();
  OperationWait(const OperationWait&) = delete;
  OperationWait& operator=(const OperationWait&) = delete;

  // Blocks until ready() returns true, and returns true. If `wait_budget` is limited, returns false
  // when the budget is used up. ready() must return true once the communicator has failed.
  // `events`: the events of Doorbell::ring_for() that wake this rank, by default all. A plain
  // ring() of the lane's bell can wake it too.
  template <class Ready>
  bool wait_until(Ready ready, WaitBudget wait_budget = WaitBudget::unlimited,
                  std::uint32_t events = Doorbell::kAnyEvents) {
    Waiter waiter(node_.ladder());
    while (!ready()) {
      if (waiter.poll_again(wait_budget)) continue;
      if (wait_budget != WaitBudget::unlimited) return false;
      prepare_sleep();
      op_.lane.block().bell.sleep(time_to_check(), ready, events);
    }
    return true;
  }

 private:
  void prepare_sleep();
  [[nodiscard]] Deadline::Duration time_to_check() const {
    return op_.observer != nullptr ? WaitObserver::kPeriod : timer_.time_to_check();
  }
  void notify_observer();
  [[nodiscard]] std::string call_text() const;
  [[nodiscard]] std::string delay_text() const;
  [[nodiscard]] std::string delay_of(int rank, bool all_posted) const;

  NodeSegment& node_;
  const CollectiveOperation& op_;
  StallTimer timer_;
  bool has_slept_ = false;
};

}  // namespace hccl::node
