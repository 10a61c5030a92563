// SPDX-License-Identifier: Apache-2.0
#include "memory_pool.h"

#include "call.h"
#include "device.h"

#include <algorithm>
#include <bit>

#include <c10/util/Exception.h>
#include <hccl_emulation.h>
#include <pthread.h>
#include <sys/mman.h>

namespace hccl_torch {

namespace {

constexpr std::size_t kPage = 4096;
// The cache may hold this many bytes, or as many as are in use if that is more.
constexpr std::uint64_t kLeastCache = 1ull << 30;

// Rounds up to one of at most eight sizes per power of two, so that at most an eighth of the
// block's pages are unused. The smallest size is one page.
std::size_t block_size(std::size_t bytes) {
  const std::size_t pages = std::max<std::size_t>((bytes + kPage - 1) / kPage, 1);
  const std::size_t step = std::max<std::size_t>(std::bit_ceil(pages) / 16, 1);
  return (pages + step - 1) / step * step * kPage;
}

}  // namespace

MemoryPool& MemoryPool::instance() {
  static MemoryPool* const pool = new MemoryPool;
  return *pool;
}

// Registers fork handlers on the first call. The prepare handlers run in reverse order of
// registration, and the library has already registered its own. A fork therefore locks the pool
// before it locks the library, in the same order as all other code.
void MemoryPool::watch_forks() {
  static const int registered =
      pthread_atfork([] { instance().lock_for_fork(); }, [] { instance().unlock_after_fork(); },
                     [] {
                       instance().enter_child();
                       instance().unlock_after_fork();
                     });
  TORCH_CHECK(registered == 0, "hccl_torch: pthread_atfork failed");
}

// Discards the cached blocks in a forked child, where they are not mapped.
void MemoryPool::enter_child() noexcept {
  is_child_ = true;
  cached_.clear();
}

void* MemoryPool::allocate(std::size_t bytes, bool is_kept) noexcept {
  const std::lock_guard lock(mutex_);
  if (is_child_) return nullptr;
  const std::size_t size = block_size(bytes);
  try {
    void* block = take_cached(size);
    if (block == nullptr) block = make_block(size);
    Block& made = blocks_.at(block);
    made.is_kept = is_kept;
    if (is_kept)
      check(hcclEmulationKeepAtFork(made.address, made.bytes, 1), "hcclEmulationKeepAtFork");
    usage_.used_bytes += size;
    ++usage_.allocations;
    return block;
  } catch (const std::exception&) {
    return nullptr;
  }
}

void* MemoryPool::take_cached(std::size_t bytes) noexcept {
  const auto found = cached_.find(bytes);
  if (found == cached_.end()) return nullptr;
  void* const block = found->second.back();
  found->second.pop_back();
  if (found->second.empty()) cached_.erase(found);
  usage_.cached_bytes -= bytes;
  ++usage_.reused;
  return block;
}

void* MemoryPool::make_block(std::size_t bytes) {
  std::uint64_t address = 0;
  synStatus status = synDeviceMalloc(device(), bytes, 0, 0, &address);
  if (status == synOutOfDeviceMemory && usage_.cached_bytes > 0) {
    shrink_cache(0);
    status = synDeviceMalloc(device(), bytes, 0, 0, &address);
  }
  check(status, "synDeviceMalloc");
  void* view = nullptr;
  try {
    check(hcclEmulationHostView(address, bytes, &view), "hcclEmulationHostView");
    check(hcclEmulationKeepAtFork(address, bytes, 0), "hcclEmulationKeepAtFork");
    watch_forks();
    blocks_.emplace(view, Block{address, bytes, false});
  } catch (...) {
    synDeviceFree(device(), address, 0);
    throw;
  }
  const auto begin = reinterpret_cast<std::uintptr_t>(view);
  lowest_ = std::min(lowest_.load(), begin);
  highest_ = std::max(highest_.load(), begin + bytes);
  return view;
}

bool MemoryPool::release(void* block) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(block);
  if (found == blocks_.end()) return false;
  const Block freed = found->second;
  usage_.used_bytes -= freed.bytes;
  if (is_child_) {
    blocks_.erase(found);
    if (freed.is_kept) ::munmap(block, freed.bytes);
    return true;
  }
  if (freed.is_kept) hcclEmulationKeepAtFork(freed.address, freed.bytes, 0);
  try {
    cached_[freed.bytes].push_back(block);
    usage_.cached_bytes += freed.bytes;
  } catch (const std::bad_alloc&) {
    free_block(block);
  }
  shrink_cache(std::max(kLeastCache, usage_.used_bytes));
  return true;
}

void MemoryPool::free_block(void* block) noexcept {
  const auto found = blocks_.find(block);
  synDeviceFree(device(), found->second.address, 0);
  blocks_.erase(found);
}

void MemoryPool::shrink_cache(std::uint64_t bytes) noexcept {
  while (usage_.cached_bytes > bytes && !cached_.empty()) {
    const auto largest = std::prev(cached_.end());
    free_block(largest->second.back());
    usage_.cached_bytes -= largest->first;
    largest->second.pop_back();
    if (largest->second.empty()) cached_.erase(largest);
  }
}

bool MemoryPool::contains(const void* address) const noexcept {
  const auto place = reinterpret_cast<std::uintptr_t>(address);
  return place >= lowest_.load(std::memory_order_relaxed) &&
         place < highest_.load(std::memory_order_relaxed);
}

void MemoryPool::trim() noexcept {
  const std::lock_guard lock(mutex_);
  shrink_cache(0);
}

MemoryPool::Usage MemoryPool::usage() const {
  const std::lock_guard lock(mutex_);
  return usage_;
}

}  // namespace hccl_torch
