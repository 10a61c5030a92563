// SPDX-License-Identifier: Apache-2.0
// The memory that the two ends of a stream share: a ring buffer for each direction, and the
// positions that each end publishes.
#pragma once

#include "base/file_descriptor.h"
#include "base/mirrored_mapping.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace hccl::shm {

// The words that one end writes and the other reads. All are in one cache line, so that a small
// message, its notification and the returned credit travel together. Positions count the bytes from
// the beginning of the stream.
struct Side {
  std::atomic<std::uint64_t> sent{0};      // read by the other end when it receives
  std::atomic<std::uint64_t> released{0};  // read by the other end when it sends
  // A copy of a small message that was sent into an empty ring. small_place is the position of the
  // first byte times kSmallUnit, plus the number of bytes. The sender writes small_place and
  // `small` before `sent`, and only when the receiver has released all earlier bytes.
  std::uint64_t small_place = 0;
  std::array<std::byte, 40> small{};
};
constexpr std::uint64_t kSmallUnit = 64;
static_assert(sizeof(Side) == 64);

// The events that a sleeping end waits for: bits of Wanted, or zero while the end is awake. The
// waker clears the bits.
struct Sleeper {
  std::atomic<std::uint32_t> wanted{0};
};
enum Wanted : std::uint32_t { bytes_wanted = 1, room_wanted = 2 };

// Every Side and every Sleeper starts at a multiple of 128 bytes, because some processors fetch
// cache lines in pairs.
struct Header {
  struct alignas(128) SpacedSide : Side {};
  struct alignas(128) SpacedSleeper : Sleeper {};
  std::array<SpacedSide, 2> sides;  // 0: the end that connected; 1: the end that accepted
  std::array<SpacedSleeper, 2> sleepers;
};

// One end's mapping of the memory. Each ring is mapped twice in succession, so that its contents
// are always contiguous.
class Segment {
 public:
  // A ring fits in the second-level cache together with the source and the destination of a copy.
  // Rings of 1 MiB were not faster.
  static constexpr std::size_t kRingBytes = std::size_t{256} << 10;

  // Creates the file that both ends map. Throws Error(hcclOutOfMemory or hcclSystemError).
  [[nodiscard]] static FileDescriptor create();
  // Maps the file. Throws Error(hcclSystemError), which names `maker`, if the file lacks the seals
  // or the size that create() gives it, and Error(hcclOutOfMemory) if the file cannot be mapped.
  Segment(const FileDescriptor& file, const std::string& maker);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  [[nodiscard]] Header& header() const { return *header_; }
  // Returns the address of the byte at `position` in the stream that `side` sends. The kRingBytes
  // bytes that start at that address are contiguous.
  [[nodiscard]] std::byte* at(std::size_t side, std::uint64_t position) const {
    return rings_[side].data() + position % kRingBytes;
  }

 private:
  std::array<MirroredMapping, 2> rings_;
  Header* header_ = nullptr;
};

}  // namespace hccl::shm
