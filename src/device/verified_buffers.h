// SPDX-License-Identifier: Apache-2.0
// Remembers which host buffers have been verified, so that a series of calls on the same buffers
// asks the kernel about each buffer only once.
#pragma once

#include "base/hash_index.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hccl::device {

// Counts the epochs of the program's host memory. A new epoch begins whenever the program learns
// that queued work is complete. The program may then unmap or protect the memory of that work, so
// buffers are verified again in each epoch.
// Thread safety: any thread.
class HostEpoch {
 public:
  [[nodiscard]] static std::uint64_t current() noexcept {
    return count.load(std::memory_order_relaxed);
  }
  // Call before reporting to the program that work is complete.
  static void advance() noexcept { count.fetch_add(1, std::memory_order_relaxed); }

 private:
  static inline std::atomic<std::uint64_t> count{1};  // number of epochs
};

// The buffers verified in the current epoch. A buffer may be forgotten, and is then verified again.
class VerifiedBuffers {
 public:
  [[nodiscard]] bool contains(std::uint64_t address, std::uint64_t bytes) const noexcept {
    const Verified& known = buffers_[index(address)];
    return known.address == address && known.bytes >= bytes && known.epoch == HostEpoch::current();
  }
  void insert(std::uint64_t address, std::uint64_t bytes) noexcept {
    buffers_[index(address)] = {address, bytes, HostEpoch::current()};
  }

 private:
  struct Verified {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    std::uint64_t epoch = 0;  // 0: not verified
  };

  [[nodiscard]] static std::size_t index(std::uint64_t address) noexcept {
    return hash_index(address >> 3, kIndexBits);
  }

  static constexpr unsigned kIndexBits = 6;
  std::array<Verified, 1 << kIndexBits> buffers_;
};

}  // namespace hccl::device
