// SPDX-License-Identifier: Apache-2.0
// The path of small collectives: every rank posts its data in its slot and computes its own result
// from all slots.
#pragma once

#include "node/collective_operation.h"
#include "node/node_segment.h"
#include "node/stall_monitor.h"

#include <cstddef>

namespace hccl::node {

class EagerPath {
 public:
  EagerPath(NodeSegment& node, StallMonitor& stalls, CollectiveOperation& op)
      : node_(node), stalls_(stalls), op_(op) {}

  // Runs the operation. Blocks until the operation is complete, and returns true. Returns false if
  // the wait budget is used up. Throws Error if the operation fails.
  bool run();

 private:
  // Maps the receive buffer for writing and returns a pointer to it. Throws Error.
  [[nodiscard]] std::byte* accessible_result() const;
  void store_result() const;

  NodeSegment& node_;
  StallMonitor& stalls_;
  CollectiveOperation& op_;
};

}  // namespace hccl::node
