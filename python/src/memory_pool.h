// SPDX-License-Identifier: Apache-2.0
// Memory for tensors that the ranks of a node share: blocks of the emulated device's memory, seen
// through their host views. Collectives use them where they lie.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace hccl_torch {

// Thread-safe. A forked child has private copies of the blocks that are kept, and gets no new ones.
class MemoryPool {
 public:
  struct Usage {
    std::uint64_t used_bytes = 0;    // of blocks that tensors hold
    std::uint64_t cached_bytes = 0;  // of blocks that wait to be used again
    std::uint64_t allocations = 0;   // so far
    std::uint64_t reused = 0;        // of these, out of the cache
  };

  // Never destroyed: tensors are freed by static destructors.
  [[nodiscard]] static MemoryPool& instance();

  // Returns a block of at least `bytes`, at a multiple of 64; null if the device has no memory
  // left, cannot be acquired, or this is a forked child. Contents are undefined. `is_kept`: forked
  // children keep it.
  [[nodiscard]] void* allocate(std::size_t bytes, bool is_kept) noexcept;
  // Takes a block back, which is then cached. Returns false if it is none.
  bool release(void* block) noexcept;
  // Returns whether `address` lies among the blocks.
  [[nodiscard]] bool contains(const void* address) const noexcept;
  // Gives all cached blocks back to the system.
  void trim() noexcept;
  [[nodiscard]] Usage usage() const;

  // Around a fork.
  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork() { mutex_.unlock(); }
  void enter_child() noexcept;

 private:
  struct Block {
    std::uint64_t address = 0;  // of the device
    std::size_t bytes = 0;
    bool is_kept = false;
  };

  MemoryPool() = default;
  static void watch_forks();
  [[nodiscard]] void* take_cached(std::size_t bytes) noexcept;
  [[nodiscard]] void* make_block(std::size_t bytes);
  void free_block(void* block) noexcept;
  // Frees cached blocks, largest first, until no more than `bytes` are cached.
  void shrink_cache(std::uint64_t bytes) noexcept;

  mutable std::mutex mutex_;
  std::unordered_map<void*, Block> blocks_;
  std::map<std::size_t, std::vector<void*>> cached_;  // by size
  Usage usage_;
  bool is_child_ = false;
  // Around all blocks: most other memory is told apart by these.
  std::atomic<std::uintptr_t> lowest_{UINTPTR_MAX}, highest_{0};
};

}  // namespace hccl_torch
