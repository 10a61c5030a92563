// SPDX-License-Identifier: Apache-2.0
// The memory that two ends of a stream share: a ring for each direction, and what each end tells
// the other.
#pragma once

#include "base/file_descriptor.h"
#include "base/mirrored_mapping.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace hccl::shm {

// The words that one end writes and the other reads, in one cache line, so that a small message,
// the news of it and the room it leaves travel together. Positions count bytes from the beginning
// of the stream.
struct Side {
  std::atomic<std::uint64_t> sent{0};      // by this end; read by the other, as receiver
  std::atomic<std::uint64_t> released{0};  // by this end; read by the other, as sender
  // A copy of what was sent into an empty ring: the position of its first byte times kSmallUnit,
  // plus its size. Written by the sender before `sent`, and only when the receiver has released
  // everything.
  std::uint64_t small_place = 0;
  std::array<std::byte, 40> small{};
};
constexpr std::uint64_t kSmallUnit = 64;
static_assert(sizeof(Side) == 64);

// The events an end sleeps for: bits of Wanted, cleared by the end that rings. Zero while it is
// awake.
struct Sleeper {
  std::atomic<std::uint32_t> wanted{0};
};
enum Wanted : std::uint32_t { bytes_wanted = 1, room_wanted = 2 };

// Lines are 128 bytes apart: processors fetch them in pairs.
struct Header {
  struct alignas(128) SpacedSide : Side {};
  struct alignas(128) SpacedSleeper : Sleeper {};
  std::array<SpacedSide, 2> sides;  // of the end that connected, and of the one that accepted
  std::array<SpacedSleeper, 2> sleepers;
};

// A mapping. Each ring is mapped twice in a row, so that its contents are always in one piece.
class Segment {
 public:
  // Fits the second-level cache with what is copied from and to. 1 MiB was not faster.
  static constexpr std::size_t kRingBytes = std::size_t{256} << 10;

  // A new file for both ends. Throws Error(hcclOutOfMemory or hcclSystemError).
  [[nodiscard]] static FileDescriptor create();
  // Throws Error(hcclSystemError), naming `maker`, if the file is not what create() makes.
  Segment(const FileDescriptor& file, const std::string& maker);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  [[nodiscard]] Header& header() const { return *header_; }
  // Where the byte at a position lies of those that `side` sends; kRingBytes from there on are its
  // successors.
  [[nodiscard]] std::byte* at(std::size_t side, std::uint64_t position) const {
    return rings_[side].data() + position % kRingBytes;
  }

 private:
  std::array<MirroredMapping, 2> rings_;
  Header* header_ = nullptr;
};

}  // namespace hccl::shm
