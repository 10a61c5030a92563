// SPDX-License-Identifier: Apache-2.0
// The path of long collectives that only move data and whose buffers all lie in host memory, if all
// ranks choose it (serves()). Each rank copies its result directly from its peers' input, by
// cross-memory attach (CrossMemory).
#pragma once

#include "node/host_collective.h"

#include <cstdint>

namespace hccl::node {

class HostReads : private HostCollective {
 public:
  // The arguments are those of HostCollective.
  HostReads(NodeSegment& node, StallMonitor& stalls, std::uint64_t cache_bytes,
            CollectiveOperation& op, std::uint32_t first);

  // Returns whether this rank chooses this path for a call whose buffers are all in host memory.
  // Other ranks may choose differently, because their permissions, the overlap of their buffers and
  // their measurements of the kernel's speed can differ.
  [[nodiscard]] static bool serves(const CollectiveCall& call, NodeSegment& node);

  // If this rank chooses this path, posts the operation, and blocks until all ranks have posted it.
  // If all ranks have chosen this path and all buffers are in host memory, runs the operation,
  // blocks until this rank's part is complete and no peer reads its input any longer, and returns
  // true. Otherwise returns false, and the operation must take another path. Throws Error if the
  // operation fails.
  bool run();

 private:
  [[nodiscard]] bool is_chosen() const;
  [[nodiscard]] bool all_read() const;
  void copy_from_peers();
  void copy_from(int peer);
  [[noreturn]] void fail_unreadable(int peer);

  const std::uint32_t end_;  // first_slice_ of the next operation
};

}  // namespace hccl::node
