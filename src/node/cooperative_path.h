// SPDX-License-Identifier: Apache-2.0
// The path of larger collectives: once all ranks have posted, one opens the operation, then
// whichever ranks run compute its tiles for everybody.
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

  // Returns true once the operation is complete, or false if its wait budget is used up before it
  // has begun. Throws Error.
  bool run();

 private:
  bool run_slice();
  bool next_slice();
  void agree_on_slices();
  void open_operation();
  void run_tiles();
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
