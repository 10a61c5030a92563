// SPDX-License-Identifier: Apache-2.0
// The memory of one emulated device: its allocations, the pages that back them, and the position of
// each allocation in the memory file.
#pragma once

#include "device/address.h"
#include "device/allocation_map.h"
#include "device/arena_pages.h"
#include "device/arena_view.h"
#include "device/kept_ranges.h"
#include "device/lookup_cache.h"
#include "device/view_space.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace hccl::device {

// A range of the memory file that lies inside one allocation.
struct MemoryRange {
  std::uint64_t file_offset = 0;
  std::uint64_t bytes = 0;
};

// The position of an address in the memory file at the time of a look-up.
struct Placement {
  std::uint64_t file_offset = 0;
  // The serial number of the pages, by which peers recognise replaced pages (ArenaView::follow).
  std::uint32_t serial = 0;
  std::uint64_t version = 0;  // version of the allocations at the look-up
};

class Arena {
 public:
  // Returns true once the work that was queued before release() can no longer access the memory.
  using Quiescent = std::function<bool()>;

  // `stagger`: see AllocationMap. `keep_bytes`: the maximum number of bytes of freed pages that the
  // arena keeps for later allocations.
  Arena(DeviceAddress base, std::uint64_t capacity, std::uint32_t stagger = 0,
        std::uint64_t keep_bytes = 0);
  ~Arena();

  // Allocates memory and returns its address, a multiple of 128. No two allocations share a page.
  // Throws SynError(synInvalidArgument) for 0 bytes, and SynError(synOutOfDeviceMemory) if no free
  // range is large enough. The error texts begin with `what`.
  [[nodiscard]] DeviceAddress allocate(std::uint64_t bytes, const char* what = "synDeviceMalloc");

  // Frees an allocation. Does not block. This call and later calls to allocate(), release() and
  // collect() evaluate `quiescent` until it returns true. Then the pages are freed or kept, and the
  // addresses become available. However, the addresses of an allocation that has moved
  // (move_to_fresh_pages()) never become available. Throws SynError(synInvalidArgument) unless
  // `address` is the base address of a live allocation.
  void release(DeviceAddress address, Quiescent quiescent);

  // Checks [address, address + bytes) and returns its position in the file. `bytes` may be 0.
  // Throws Error(hcclInvalidArgument), which names `what`, unless the range lies in one live
  // allocation.
  [[nodiscard]] MemoryRange resolve(DeviceAddress address, std::uint64_t bytes, const char* what);

  // Returns the host address through which the program's own code can access [address, address +
  // bytes). The host address is valid until the allocation is freed. Throws
  // Error(hcclInvalidArgument) as resolve() does, and Error(hcclOutOfMemory).
  [[nodiscard]] std::byte* host_view(DeviceAddress address, std::uint64_t bytes);

  // Returns the device address for an address in the range of host views, and any other address
  // unchanged. Takes no lock and does not check allocations. If the range of host views cannot be
  // reserved (ViewSpace::refused()), views count as host memory.
  [[nodiscard]] std::uint64_t behind_view(std::uint64_t address) const noexcept {
    if (is_device_address(address)) [[likely]]
      return address;
    const std::optional<std::uint64_t> offset = views_.offset_of(address);
    return offset ? base_ + *offset : address;
  }
  // Returns whether behind_view() recognises all views. Thread safety: any thread.
  [[nodiscard]] bool recognises_views() const noexcept { return !views_.refused(); }
  // Returns the device address of the byte that a live allocation's host view maps at
  // `host_address`, or nothing if no such view contains that address.
  [[nodiscard]] std::optional<DeviceAddress> find_seen_at(std::uint64_t host_address);

  // Frees the whole pages inside [address, address + bytes), which read as zeros from then on. The
  // caller must ensure that no queued work uses the range. Throws Error(hcclInvalidArgument) as
  // resolve() does, and Error(hcclSystemError) if the system refuses.
  void trim(DeviceAddress address, std::uint64_t bytes);

  // Sets whether children forked from now on receive a private copy of the range, at the address of
  // its host view. Applies until the allocation is freed. By default, nothing is mapped at that
  // address in a child. Throws as host_view() does.
  void keep_at_fork(DeviceAddress address, std::uint64_t bytes, bool keep);

  // Called before a fork: locks the arena, and returns the number of bytes that the child keeps.
  // After the fork, the parent and the child must both call unlock_after_fork().
  [[nodiscard]] std::uint64_t lock_for_fork();
  void unlock_after_fork() noexcept { mutex_.unlock(); }
  // Called in the child: makes the private copies. If a copy fails, as when there is too little
  // memory for it, leaves that copy unmapped, makes the others and returns false. Uses no heap.
  [[nodiscard]] bool copy_kept() noexcept;
  // Called in the child: unmaps the private copies.
  void drop_kept() noexcept;

  // Moves every allocation that overlaps `range` (file offsets) to fresh pages, so that later
  // writes by a stopped peer to the old pages do not change the allocation. Keeps the old pages
  // until the allocation is freed, because other ranks' operations may be reading them. Throws
  // Error(hcclOutOfMemory).
  void move_to_fresh_pages(MemoryRange range);
  // Copies an operation's result to the allocation's current pages, if the allocation has moved
  // since locate() returned `before` to the operation.
  void copy_if_moved(DeviceAddress address, const Placement& before, std::uint64_t bytes);

  // Frees released allocations that have become quiescent.
  void collect();

  // Registers a watcher. The watcher is not called after unwatch() has returned.
  void watch(PageWatcher& watcher);
  void unwatch(PageWatcher& watcher);

  [[nodiscard]] std::uint64_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::uint64_t free_bytes() const noexcept {
    return capacity_ - allocated_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] DeviceAddress base() const noexcept { return base_; }
  [[nodiscard]] const std::shared_ptr<ArenaView>& view() const noexcept { return pages_.view(); }

  // Returns the current position of an address in the memory file, for an operation that is about
  // to run. Also finds allocations that have been freed but are still used by queued work.
  [[nodiscard]] Placement locate(DeviceAddress address);
  // Returns whether the allocations are unchanged since the look-up of `placement`.
  [[nodiscard]] bool is_current(const Placement& placement) const noexcept {
    return placement.version == version_.load(std::memory_order_acquire);
  }
  [[nodiscard]] std::uint64_t file_offset(DeviceAddress address) {
    return locate(address).file_offset;
  }

 private:
  using Entry = AllocationMap::Entry;

  // Returns the allocation of a range that resolve() has found. Throws Error(hcclInvalidArgument)
  // if another thread has freed the allocation since.
  [[nodiscard]] Entry& require_live(DeviceAddress address);
  void map_view(Entry& entry);
  // Calls visit(view, file offset, bytes) for every range of pages that forked children keep.
  template <class Visit>
  void for_each_kept(Visit visit);
  void collect_locked();
  void end_version() { version_.fetch_add(1, std::memory_order_release); }
  // Stores an allocation in the thread's look-up cache. Returns the placement of `offset`.
  [[nodiscard]] Placement remember(const Entry& entry, std::uint64_t offset) const;
  [[nodiscard]] std::string describe(const Entry& entry) const;

  const DeviceAddress base_;
  const std::uint64_t capacity_;
  std::mutex mutex_;
  ArenaPages pages_;
  ViewSpace views_;  // outlives the views of the allocations
  AllocationMap allocations_;
  std::atomic<std::uint64_t> allocated_{0};
  // Changes whenever the allocations change. A cached look-up is valid while this number is
  // unchanged.
  std::atomic<std::uint64_t> version_{1};
  const LookupCache lookups_;
  std::size_t retiring_ = 0;
  KeptRanges kept_;  // offsets in the arena
};

}  // namespace hccl::device
