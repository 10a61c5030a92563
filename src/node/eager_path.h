// SPDX-License-Identifier: Apache-2.0
// The path of small collectives: every rank posts its data in its slot, or in a host payload, and
// computes its own result from the data of all ranks.
#pragma once

#include "node/collective_operation.h"
#include "node/node_segment.h"
#include "node/stall_monitor.h"

#include <cstddef>
#include <cstdint>

namespace hccl::node {

// `other_path`: the data does not fit into a slot, and some rank has a buffer in device memory. The
// operation must take the cooperative path.
enum class EagerOutcome : std::uint8_t { complete, suspended, other_path };

class EagerPath {
 public:
  EagerPath(NodeSegment& node, StallMonitor& stalls, CollectiveOperation& op)
      : node_(node), stalls_(stalls), op_(op) {}

  // Runs the operation. Blocks until it is complete, until the posts of all ranks show that it must
  // take another path, or until the wait budget is used up. Throws Error if the operation fails.
  EagerOutcome run();

 private:
  // Returns a pointer to the receive buffer, which it maps for writing if the buffer is in device
  // memory. Access to host memory was checked before the operation was posted. Throws Error.
  [[nodiscard]] std::byte* accessible_result() const;
  // Throws Error if the result goes to host memory that this rank cannot write.
  void check_result() const;
  [[nodiscard]] const std::byte* payload(int rank) const;
  void store_result() const;

  NodeSegment& node_;
  StallMonitor& stalls_;
  CollectiveOperation& op_;
};

}  // namespace hccl::node
