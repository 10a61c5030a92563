// SPDX-License-Identifier: Apache-2.0
// Cuts a cooperative operation into slices that fit into a staging buffer, if any rank uses one.
// The slices are the same on all ranks.
#pragma once

#include "call/collective_call.h"
#include "device/address.h"

#include <algorithm>
#include <cstdint>

namespace hccl::node {

// A range of bytes in every chunk of a call's buffers.
struct Slice {
  std::uint64_t first_byte = 0;
  std::uint64_t bytes = 0;
};

// One half of a staging buffer holds the data that a rank sends, the other the data that it
// receives. A half is small enough for a slice to stay in the cache from the time when it is copied
// to the staging buffer until its tiles are computed.
inline constexpr std::uint64_t kStagingHalfBytes = 512 << 10;
// The offset of a page for short messages, which follows the halves.
inline constexpr std::uint64_t kShortMessagesOffset = 2 * kStagingHalfBytes;
inline constexpr std::uint64_t kExchangeStagingBytes = kShortMessagesOffset + 4096;
// After these follow the segments that HostPath uses, and the accumulators of HostChain. They do
// not overlap the halves, because peers may still read them when this rank's next call begins.
inline constexpr std::uint64_t kHostPathBytes = 1 << 20;
inline constexpr std::uint64_t kHostChainBytes = 1 << 20;
// They begin near the middle of a page because most buffers of programs begin near the beginning of
// one. A load that follows a store to almost the same offset in another page waits for that store:
// copies that bypass the cache took up to 1.7 times as long. The offset depends on the rank, so
// that the data of several ranks do not compete for the same sets of the first-level cache.
[[nodiscard]] constexpr std::uint64_t middle_of_page(std::uint64_t offset, int rank) {
  constexpr std::uint64_t kFirst = 1536;
  constexpr std::uint64_t kStagger = 192;
  return device::round_up(offset, device::kPageBytes) + kFirst +
         static_cast<std::uint64_t>(rank % 8) * kStagger;
}
inline constexpr std::uint64_t kMiddleOfPageBytes = 8192;  // more than middle_of_page() adds
// Return the offset, in a memory file, of the first segment or accumulator in the staging buffer of
// `rank`, which begins at `staging`.
[[nodiscard]] constexpr std::uint64_t host_path_offset(std::uint64_t staging, int rank) {
  return middle_of_page(staging + kExchangeStagingBytes, rank);
}
[[nodiscard]] constexpr std::uint64_t host_chain_offset(std::uint64_t staging, int rank) {
  return host_path_offset(staging, rank) + kHostPathBytes;
}
inline constexpr std::uint64_t kStagingBytes =
    kExchangeStagingBytes + kMiddleOfPageBytes + kHostPathBytes + kHostChainBytes;

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
  // Returns the offset, in such a buffer, of slice `number` of a chunk.
  [[nodiscard]] std::uint64_t offset_in(bool staged, int chunk, std::uint32_t number) const {
    return buffer_bytes(staged, chunk) + (staged ? 0 : slice(number).first_byte);
  }

 private:
  std::uint64_t chunk_bytes_;
  std::uint64_t slice_bytes_;
};

}  // namespace hccl::node
