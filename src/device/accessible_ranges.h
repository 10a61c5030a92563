// SPDX-License-Identifier: Apache-2.0
// Remembers the host memory that a thread has found accessible, so that the thread can copy it with
// plain loads and stores instead of system calls.
#pragma once

#include "device/host_memory.h"
#include "device/verified_buffers.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace hccl::device {

// Remembers at most kMaxRanges host ranges that allow one kind of access. Joins adjacent ranges, so
// that a buffer copied slice by slice becomes one range.
class AccessibleRanges {
 public:
  static constexpr std::size_t kMaxRanges = 64;

  explicit AccessibleRanges(HostAccess access) : access_(access) {}

  // Returns the calling thread's own instance. No other thread uses it, so a look-up takes no lock.
  [[nodiscard]] static AccessibleRanges& of_this_thread(HostAccess access);

  // Asks the kernel again about the known ranges that overlap the given range. Keeps a known range
  // only if all pages of the overlap are still mapped, and the first and last pages of the overlap
  // still allow the access. Does not detect changed protection of the pages in between. Takes about
  // 1.5 us, regardless of the length.
  void recheck(std::uint64_t address, std::uint64_t bytes);
  // Calls recheck(), unless this object remembers that recheck_once() has rechecked the buffer in
  // the current host epoch (VerifiedBuffers).
  void recheck_once(std::uint64_t address, std::uint64_t bytes) {
    if (rechecked_.contains(address, bytes)) return;
    recheck(address, bytes);
    rechecked_.insert(address, bytes);
  }
  // Returns whether every page of the range is mapped and allows the access. For a known range,
  // makes no system call and does not detect changes since the last check, so call recheck() or
  // recheck_once() before each series of accesses. For any other range, populates the pages, and
  // returns false if the kernel cannot populate ranges.
  [[nodiscard]] bool admits(std::uint64_t address, std::uint64_t bytes);

 private:
  struct Interval {
    std::uint64_t begin;
    std::uint64_t end;
  };

  [[nodiscard]] static Interval pages_of(std::uint64_t address, std::uint64_t bytes);
  // Returns the index of the first range whose end is at or after `address`.
  [[nodiscard]] std::size_t first_not_before(std::uint64_t address) const;
  void insert(Interval range);
  void erase(std::size_t first, std::size_t last);

  const HostAccess access_;
  VerifiedBuffers rechecked_;
  std::size_t count_ = 0;
  std::array<Interval, kMaxRanges> ranges_{};  // sorted, disjoint, not adjacent
};

}  // namespace hccl::device
