// SPDX-License-Identifier: Apache-2.0
// Waits for other ranks in a collective: polls, then sleeps on the lane's bell, and fails the
// communicator for ranks that will never come.
#pragma once

#include "base/waiter.h"
#include "node/collective_operation.h"
#include "node/node_segment.h"
#include "node/stall_monitor.h"

#include <string>

namespace hccl::node {

class OperationWait {
 public:
  OperationWait(NodeSegment& node, StallMonitor& stalls, const CollectiveOperation& op)
      : node_(node), op_(op), timer_(stalls) {}
  ~OperationWait();
  OperationWait(const OperationWait&) = delete;
  OperationWait& operator=(const OperationWait&) = delete;

  // Blocks until `ready()` returns true. Returns false once the wait budget is used up, which an
  // unlimited one never is. A fault of the communicator must make `ready()` true.
  template <class Ready>
  bool wait_until(Ready ready, WaitBudget wait_budget = WaitBudget::unlimited) {
    Waiter waiter(node_.ladder());
    while (!ready()) {
      if (waiter.poll_again(wait_budget)) continue;
      if (wait_budget != WaitBudget::unlimited) return false;
      prepare_sleep();
      op_.lane.block().bell.sleep(timer_.time_to_check(), ready);
    }
    return true;
  }

 private:
  void prepare_sleep();
  [[nodiscard]] std::string call_text() const;
  [[nodiscard]] std::string delay_text() const;
  [[nodiscard]] std::string delay_of(int rank, bool all_posted) const;

  NodeSegment& node_;
  const CollectiveOperation& op_;
  StallTimer timer_;
};

}  // namespace hccl::node
