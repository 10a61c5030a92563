// SPDX-License-Identifier: Apache-2.0
// The sparse memory file of an arena: frees, moves and copies its pages. Pages take no memory until
// they are written.
#pragma once

#include "device/address_allocator.h"
#include "device/arena_view.h"
#include "device/kept_ranges.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace hccl::device {

// An observer of freed pages. The arena holds its lock while it calls pages_freed(), so
// pages_freed() must not call a function of the arena that takes this lock.
class PageWatcher {
 public:
  PageWatcher() = default;
  virtual ~PageWatcher() = default;
  PageWatcher(const PageWatcher&) = delete;
  PageWatcher& operator=(const PageWatcher&) = delete;

  // Called when the pages of the range have been freed, or when the system has refused to free
  // them. The range is not reused before this function returns.
  virtual void pages_freed(std::uint64_t file_offset, std::uint64_t bytes) noexcept = 0;
};

// All offsets are offsets in the file. Not thread-safe, except for view(); the arena holds its lock
// during calls.
class ArenaPages {
 public:
  // The file has 2 * `capacity` bytes; the second half is for moved allocations. keep() keeps at
  // most `keep_bytes` bytes of pages.
  ArenaPages(std::uint64_t capacity, std::uint64_t keep_bytes);

  [[nodiscard]] const std::shared_ptr<ArenaView>& view() const noexcept { return view_; }

  // Frees the pages and calls the watchers. If the system refuses to free the pages, still calls
  // the watchers, sets errno and returns false.
  bool give_back(std::uint64_t offset, std::uint64_t bytes) noexcept;
  // Frees the pages like give_back(), but logs a refusal instead of returning it.
  void retire(std::uint64_t offset, std::uint64_t bytes);
  // Keeps the pages of a freed allocation for a later one, which then needs neither new pages nor
  // new page-table entries. If more than `keep_bytes` would be kept, retires the pages with the
  // highest offsets, because allocations take the lowest free offsets. While a watcher exists,
  // retires the freed pages instead, because a NIC may still write to the pages of a failed
  // operation. If keep() throws std::bad_alloc, nothing has changed.
  void keep(std::uint64_t offset, std::uint64_t bytes);
  // Stops keeping the pages of a range, because an allocation now uses them. If reuse() throws
  // std::bad_alloc, nothing has changed.
  void reuse(std::uint64_t offset, std::uint64_t bytes) {
    kept_bytes_ -= kept_.remove(offset, offset + bytes);
  }

  // Copies the data of a range to fresh pages and returns their offset. Throws
  // Error(hcclOutOfMemory).
  [[nodiscard]] std::uint64_t copy_to_fresh(std::uint64_t offset, std::uint64_t bytes);
  // Frees a range of offsets that copy_to_fresh() has returned. Call it after retire().
  void release_fresh(std::uint64_t offset, std::uint64_t bytes) { fresh_.release(offset, bytes); }
  // Maps private memory at `address`, which must be free, and copies the data of the range to that
  // memory. If this fails, as when there is too little memory, leaves nothing mapped and returns
  // false. Uses no heap.
  [[nodiscard]] bool map_copy(std::byte* address, std::uint64_t offset,
                              std::uint64_t bytes) const noexcept;

  void watch(PageWatcher& watcher) { watchers_.push_back(&watcher); }
  void unwatch(PageWatcher& watcher) { std::erase(watchers_, &watcher); }

 private:
  std::shared_ptr<ArenaView> view_;
  AddressAllocator fresh_;  // offsets past the capacity
  const std::uint64_t keep_bytes_;
  KeptRanges kept_;  // of freed allocations
  std::uint64_t kept_bytes_ = 0;
  std::vector<PageWatcher*> watchers_;
};

}  // namespace hccl::device
