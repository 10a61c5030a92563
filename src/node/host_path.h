// SPDX-License-Identifier: Apache-2.0
// The path of larger collectives whose buffers all lie in host memory, unless HostChain or
// HostReads runs them. Peers cannot map that memory. Slice by slice, each rank therefore copies the
// data that its peers need into its own staging buffer, and copies the data that it receives out of
// the staging buffers.
#pragma once

#include "node/host_collective.h"

#include <cstddef>
#include <cstdint>

namespace hccl::node {

// In a reduction, each rank reduces its own share of every slice. For that share, the rank accesses
// its own input and output directly. No rank writes to another rank's program buffers.
class HostPath : private HostCollective {
 public:
  // The arguments are those of HostCollective.
  HostPath(NodeSegment& node, StallMonitor& stalls, std::uint64_t cache_bytes,
           CollectiveOperation& op, std::uint32_t first);

  // Posts the operation, and blocks until all ranks have posted it. If the buffers of all ranks lie
  // in host memory, runs the operation, blocks until this rank's part is complete, and returns
  // true. Otherwise returns false, and the operation must take the cooperative path. Throws Error
  // if the operation fails.
  bool run();

 private:
  // Posts the operation and fills its first slice, unless this rank has already done so.
  void begin();
  void begin_next();
  [[nodiscard]] bool can_fill_early() const;
  void fill(std::uint32_t slice);
  void fold(std::uint32_t slice);
  void drain(std::uint32_t slice);
  // Returns the rank whose staging buffer holds the result of `rank`'s share. If there are only two
  // ranks, each overwrites the other's staged input with its result, so that the staging buffers
  // take up half as much cache.
  [[nodiscard]] int keeper_of_share(int rank) const { return node_.size() == 2 ? 1 - rank : rank; }
  // Returns the offset at which `slice` is staged, relative to the first segment.
  [[nodiscard]] std::uint64_t place_of(std::uint32_t slice) const;
  // Returns a pointer to `bytes` bytes in the staging buffer of `rank`, at `offset` in the segment
  // of `slice`.
  [[nodiscard]] std::byte* staged(int rank, std::uint32_t slice, std::uint64_t offset,
                                  std::uint64_t bytes) const;

  const std::uint64_t parts_;  // of a segment, which successive slices use in turn
};

}  // namespace hccl::node
