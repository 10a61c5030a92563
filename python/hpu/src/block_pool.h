// SPDX-License-Identifier: Apache-2.0
// Allocates the emulated device's memory to HPU tensors. Small blocks are carved out of slabs.
// Slabs and large blocks come from hccl_torch's MemoryPool.
#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include <c10/core/Allocator.h>
#include <c10/core/CachingDeviceAllocator.h>

namespace hccl_torch_hpu {

// Blocks are host views of device memory, aligned to 64 bytes. The pool is never destroyed, because
// static destructors free tensors. Thread safety: any thread.
class BlockPool {
 public:
  using Statistics = c10::CachingDeviceAllocator::DeviceStats;

  [[nodiscard]] static BlockPool& instance();

  [[nodiscard]] bool is_in_forked_process() const noexcept { return is_child_; }
  // Throws c10::Error in a forked child, which cannot access the device's memory.
  void require_own_process() const;

  // Returns a block of at least `bytes` bytes with undefined contents, or null for 0 bytes. Throws
  // c10::OutOfMemoryError if the device has no memory left, and c10::Error in a forked child or if
  // no device can be acquired.
  [[nodiscard]] c10::DataPtr allocate(std::size_t bytes);
  // Frees a block, given only its address. Returns false if the block does not belong to the pool.
  bool release(void* block) noexcept;
  // Frees the blocks that the MemoryPool has cached.
  void trim();
  [[nodiscard]] Statistics statistics() const;
  void reset_accumulated();
  void reset_peaks();
  // Returns the free and the total bytes of the device. Blocks in the MemoryPool's cache count as
  // free.
  [[nodiscard]] static std::pair<std::size_t, std::size_t> free_and_total();

  // Free a block of a size class, or a large block. Called by the blocks' deleters.
  void release_small(void* block, std::size_t size_class) noexcept;
  void release_large(void* block) noexcept;

 private:
  BlockPool() = default;
  // Registers the fork handlers on the first call, which must follow the first allocation from the
  // MemoryPool. The prepare handlers run in reverse order of registration. A fork therefore locks
  // this pool before the MemoryPool, in the same order as all other code.
  static void watch_forks();
  [[nodiscard]] void* take_small(std::size_t size_class);
  [[nodiscard]] void* take_large(std::size_t bytes);
  void refill(std::size_t size_class);
  [[noreturn]] void report_exhaustion(std::size_t bytes);
  // Counts an allocation or a release. Call it with the lock held.
  void count(std::size_t bytes, bool is_allocated) noexcept;

  static constexpr std::size_t kClasses = 32;

  mutable std::mutex mutex_;
  std::array<std::vector<void*>, kClasses> free_;
  std::vector<std::pair<void*, std::size_t>> large_;  // (block, bytes), sorted by address
  std::vector<std::pair<void*, std::size_t>> slabs_;  // (slab, size class), sorted by address
  Statistics statistics_;
  bool is_child_ = false;
};

}  // namespace hccl_torch_hpu
