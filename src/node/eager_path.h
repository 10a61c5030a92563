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

  // Runs the operation. Blocks until it is complete and returns true, or returns false when its
  // wait budget is used up. Throws Error if it fails.
  bool run();

 private:
  // Returns a pointer to the receive buffer, to which this rank can write. Throws Error.
  [[nodiscard]] std::byte* accessible_result() const;
  void store_result() const;

  NodeSegment& node_;
  StallMonitor& stalls_;
  CollectiveOperation& op_;
};

}  // namespace hccl::node
