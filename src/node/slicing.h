// SPDX-License-Identifier: Apache-2.0
// Cuts a cooperative operation into slices that fit into a staging buffer, if any rank uses one.
// The slices are the same on all ranks.
#pragma once

#include "call/collective_call.h"
#include "node/staging_layout.h"

#include <algorithm>
#include <cstdint>

namespace hccl::node {

// A range of bytes in every chunk of a call's buffers.
struct Slice {
  std::uint64_t first_byte = 0;
  std::uint64_t bytes = 0;
};

class Slicing {
 public:
  Slicing(const CollectiveCall& call, int ranks, bool staged)
      : chunk_bytes_(chunk_bytes(call, ranks)), slice_bytes_(chunk_bytes_) {
    if (!staged) return;
    const auto chunks =
        static_cast<std::uint64_t>(std::max(send_chunks(call, ranks), recv_chunks(call, ranks)));
    slice_bytes_ = std::min(chunk_bytes_, kStagingHalfBytes / chunks / 64 * 64);
  }

  // Returns the number of slices, which is at least 1 even for a call without elements.
  [[nodiscard]] std::uint32_t slices() const {
    if (chunk_bytes_ == slice_bytes_) return 1;
    return static_cast<std::uint32_t>((chunk_bytes_ + slice_bytes_ - 1) / slice_bytes_);
  }
  [[nodiscard]] Slice slice(std::uint32_t number) const {
    const std::uint64_t first = number * slice_bytes_;
    return {first, std::min(slice_bytes_, chunk_bytes_ - first)};
  }
  // Returns the size, in bytes, of a buffer of `chunks` chunks. A staging buffer (`staged`) holds
  // one slice of each chunk.
  [[nodiscard]] std::uint64_t buffer_bytes(bool staged, int chunks) const {
    return (staged ? slice_bytes_ : chunk_bytes_) * static_cast<std::uint64_t>(chunks);
  }
  // Returns the offset at which slice `number` of a chunk begins in the buffer.
  [[nodiscard]] std::uint64_t offset_in(bool staged, int chunk, std::uint32_t number) const {
    return buffer_bytes(staged, chunk) + (staged ? 0 : slice(number).first_byte);
  }

 private:
  std::uint64_t chunk_bytes_;
  std::uint64_t slice_bytes_;
};

}  // namespace hccl::node
