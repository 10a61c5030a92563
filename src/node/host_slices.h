// SPDX-License-Identifier: Apache-2.0
// Cuts a collective on host memory into slices of limited size, and each slice of a reduction into
// one share per rank. All ranks do so identically.
#pragma once

#include "call/collective_call.h"
#include "device/address.h"
#include "node/slicing.h"

#include <algorithm>
#include <cstdint>

namespace hccl::node {

class HostSlices {
 public:
  // In HostPath, consecutive slices use the segments of a staging buffer in turn. A slice of at
  // most half a segment may use any part of it.
  static constexpr std::uint32_t kSegments = 4;
  static constexpr std::uint64_t kSegmentBytes = kHostPathBytes / kSegments;

  // `segment_bytes`: the maximum size of a slice, summed over all chunks, unless a slice of 64
  // bytes of each chunk is larger.
  HostSlices(const CollectiveCall& call, int ranks, std::uint64_t segment_bytes)
      : ranks_(static_cast<std::uint64_t>(ranks)),
        chunks_(static_cast<std::uint64_t>(send_chunks(call, ranks))),
        chunk_bytes_(chunk_bytes(call, ranks)),
        only_reducer_(ranks == 2 && call.traits().receivers == RankSet::root ? call.root : -1) {
    slice_bytes_ =
        std::min(chunk_bytes_, std::max<std::uint64_t>(segment_bytes / chunks_ / 64, 1) * 64);
  }

  [[nodiscard]] std::uint32_t count() const {
    return static_cast<std::uint32_t>((chunk_bytes_ + slice_bytes_ - 1) / slice_bytes_);
  }
  [[nodiscard]] Slice slice(std::uint32_t number) const {
    const std::uint64_t first = number * slice_bytes_;
    return {first, std::min(slice_bytes_, chunk_bytes_ - first)};
  }
  // Returns the part of a slice that `rank` reduces, relative to the beginning of the slice. If
  // there are two ranks, the root of a reduce reduces everything, because a share of the other rank
  // would be copied twice.
  [[nodiscard]] Slice share(const Slice& slice, int rank) const {
    if (only_reducer_ >= 0 && rank != only_reducer_) return {rank == 0 ? 0 : slice.bytes, 0};
    if (only_reducer_ >= 0) return {0, slice.bytes};
    const std::uint64_t most = ((slice.bytes + ranks_ - 1) / ranks_ + 63) / 64 * 64;
    const std::uint64_t first = std::min(static_cast<std::uint64_t>(rank) * most, slice.bytes);
    return {first, std::min(most, slice.bytes - first)};
  }
  // Return the offset of a chunk in a program's buffer, and of the chunk's slice in a segment.
  [[nodiscard]] std::uint64_t offset_of(int chunk) const {
    return static_cast<std::uint64_t>(chunk) * chunk_bytes_;
  }
  [[nodiscard]] std::uint64_t staged_offset_of(int chunk) const {
    return static_cast<std::uint64_t>(chunk) * slice_bytes_;
  }
  // Returns the size of a slice in a segment, summed over all chunks and rounded up to lines.
  [[nodiscard]] std::uint64_t staged_bytes() const {
    return device::round_up(chunks_ * slice_bytes_, 64);
  }

 private:
  std::uint64_t ranks_;
  std::uint64_t chunks_;
  std::uint64_t chunk_bytes_;
  int only_reducer_;  // -1: every rank reduces a share
  std::uint64_t slice_bytes_ = 0;
};

}  // namespace hccl::node
