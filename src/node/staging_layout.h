// SPDX-License-Identifier: Apache-2.0
// The parts of a staging buffer. A communicator has one staging buffer for each stream on which a
// call needs one.
#pragma once

#include "device/address.h"

#include <cstdint>

namespace hccl::node {

// A cooperative operation uses two equal parts, the halves: one holds the data that a rank sends,
// the other the data that it receives. Copies between a rank's own host buffers use the first half.
// A half is small enough that a slice, once copied to the staging buffer, stays in the cache until
// its tiles are computed.
inline constexpr std::uint64_t kStagingHalfBytes = 512 << 10;
// Messages (MessageSteps), HostPath and HostChain have parts of their own, because peers may still
// be accessing these parts when this rank's next call begins.
// The message ring and the part of HostPath exceed many second-level caches: a rank's store takes
// longer if another rank's cache still holds the line that it has read.
inline constexpr std::uint64_t kMessageRingBytes = 2 << 20;
inline constexpr std::uint64_t kMessagePiecesBytes = 1 << 20;
inline constexpr std::uint64_t kHostPathBytes = 2 << 20;
inline constexpr std::uint64_t kHostChainBytes = 1 << 20;
// These parts begin near the middle of a page, because most program buffers begin near the start of
// one, and a load waits for an earlier store to nearly the same offset in another page (4 KiB
// aliasing). Without this offset, copies that bypass the caches took up to 1.7 times as long. The
// offset depends on the rank, so that several ranks' data does not compete for the same sets of the
// first-level cache.
[[nodiscard]] constexpr std::uint64_t middle_of_page(std::uint64_t offset, int rank) {
  constexpr std::uint64_t kFirst = 1536;
  constexpr std::uint64_t kStagger = 192;
  return device::round_up(offset, device::kPageBytes) + kFirst +
         static_cast<std::uint64_t>(rank % 8) * kStagger;
}
inline constexpr std::uint64_t kMiddleOfPageBytes = 8192;  // more than middle_of_page() adds

// Return where a part of the staging buffer of `rank` begins in the memory file. `staging`: the
// offset of the staging buffer itself.
[[nodiscard]] constexpr std::uint64_t message_ring_offset(std::uint64_t staging, int rank) {
  return middle_of_page(staging + 2 * kStagingHalfBytes, rank);
}
[[nodiscard]] constexpr std::uint64_t message_pieces_offset(std::uint64_t staging, int rank) {
  return message_ring_offset(staging, rank) + kMessageRingBytes;
}
[[nodiscard]] constexpr std::uint64_t host_path_offset(std::uint64_t staging, int rank) {
  return message_pieces_offset(staging, rank) + kMessagePiecesBytes;
}
[[nodiscard]] constexpr std::uint64_t host_chain_offset(std::uint64_t staging, int rank) {
  return host_path_offset(staging, rank) + kHostPathBytes;
}
inline constexpr std::uint64_t kStagingBytes = 2 * kStagingHalfBytes + kMiddleOfPageBytes +
                                               kMessageRingBytes + kMessagePiecesBytes +
                                               kHostPathBytes + kHostChainBytes;

}  // namespace hccl::node
