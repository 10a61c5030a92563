// SPDX-License-Identifier: Apache-2.0
// The path of larger collectives: when all ranks have posted, one rank opens the operation. The
// ranks that happen to be running then compute its tiles on behalf of all ranks. If the ranks map
// buffers by shares (Mapping::by_shares), each rank computes a fixed share of the tiles instead.
#pragma once

#include "node/collective_operation.h"
#include "node/node_segment.h"
#include "node/operation_wait.h"
#include "node/stall_monitor.h"
#include "node/tile_runner.h"

#include <cstdint>

namespace hccl::node {

class CooperativePath {
 public:
  CooperativePath(NodeSegment& node, StallMonitor& stalls, std::uint64_t cache_bytes,
                  CollectiveOperation& op)
      : node_(node), op_(op), wait_(node, stalls, op), tiles_(node, cache_bytes, op) {}

  // Runs the operation, or resumes it. Blocks until the operation is complete, and returns true.
  // Returns false if the wait budget is used up before that. Throws Error if the operation fails.
  bool run();

 private:
  bool gather();
  bool next_slice();
  // Fills the staging buffer, if there is one, and publishes that this rank's part of the current
  // slice is ready.
  void make_slice_ready();
  void agree_on_plan();
  [[nodiscard]] WaitBudget budget_for_shares() const;
  void open_operation();
  void await_storing_peers();
  [[nodiscard]] bool is_in(LaneBlock::Phase phase) const {
    return op_.lane.block().state.load(std::memory_order_acquire) == op_.lane.state_word(phase);
  }

  NodeSegment& node_;
  CollectiveOperation& op_;
  OperationWait wait_;
  TileRunner tiles_;
};

}  // namespace hccl::node
