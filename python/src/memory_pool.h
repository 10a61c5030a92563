// SPDX-License-Identifier: Apache-2.0
// A pool of memory for tensors. The ranks of a node share this memory: the blocks are host views of
// the emulated device's memory, so collectives use the tensors in place.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace hccl_torch {

// A forked child has private copies of the blocks allocated with `is_kept`, and cannot allocate
// blocks. Thread safety: any thread.
class MemoryPool {
 public:
  struct Usage {
    std::uint64_t used_bytes = 0;    // in blocks that tensors hold
    std::uint64_t cached_bytes = 0;  // in free blocks of the cache
    std::uint64_t allocations = 0;   // number of allocations so far
    std::uint64_t reused = 0;        // number of allocations that reused a cached block
  };

  // Returns the singleton. It is never destroyed, because static destructors free tensors.
  [[nodiscard]] static MemoryPool& instance();

  // Returns a block of at least `bytes` bytes with undefined contents, at an address that is a
  // multiple of 64. Returns null in a forked child and after any failure, for example if the device
  // has no memory left or cannot be acquired. If `is_kept`, forked children get a copy of the
  // block.
  [[nodiscard]] void* allocate(std::size_t bytes, bool is_kept) noexcept;
  // Puts a block into the cache, or in a forked child, drops the child's copy of the block. Returns
  // false if `block` is not a block of the pool.
  bool release(void* block) noexcept;
  // Returns whether `address` is within the bounds of all blocks ever made. An address within these
  // bounds may still lie outside every block.
  [[nodiscard]] bool contains(const void* address) const noexcept;
  // Frees all cached blocks.
  void trim() noexcept;
  [[nodiscard]] Usage usage() const;

  // Only for the fork handlers that watch_forks() registers.
  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork() { mutex_.unlock(); }
  void enter_child() noexcept;

 private:
  struct Block {
    std::uint64_t address = 0;  // on the device
    std::size_t bytes = 0;
    bool is_kept = false;
  };

  MemoryPool() = default;
  static void watch_forks();
  [[nodiscard]] void* take_cached(std::size_t bytes) noexcept;
  [[nodiscard]] void* make_block(std::size_t bytes);
  void free_block(void* block) noexcept;
  // Frees cached blocks, largest first, until no more than `bytes` bytes are cached.
  void shrink_cache(std::uint64_t bytes) noexcept;

  mutable std::mutex mutex_;
  std::unordered_map<void*, Block> blocks_;
  std::map<std::size_t, std::vector<void*>> cached_;  // blocks by size
  Usage usage_;
  bool is_child_ = false;
  // The bounds of all blocks ever made.
  std::atomic<std::uintptr_t> lowest_{UINTPTR_MAX}, highest_{0};
};

}  // namespace hccl_torch
