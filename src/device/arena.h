// SPDX-License-Identifier: Apache-2.0
// The memory of one emulated device: a sparse memory file, the allocations in it, and the position
// of each in the file. Pages take no memory until they are written.
#pragma once

#include "device/address.h"
#include "device/address_allocator.h"
#include "device/arena_view.h"
#include "device/host_view.h"
#include "device/kept_ranges.h"
#include "device/view_space.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace hccl::device {

// A checked range of device memory, inside one allocation.
struct MemoryRange {
  std::uint64_t file_offset = 0;
  std::uint64_t bytes = 0;
};

// The current position of an address.
struct Placement {
  std::uint64_t file_offset = 0;
  // The number of the pages there, by which peers recognise new pages (ArenaView::follow).
  std::uint32_t serial = 0;
  std::uint64_t version = 0;  // of the allocations at the time of the look-up
};

// Observes freed pages. The arena holds its lock during the call, so the watcher must not take it.
class PageWatcher {
 public:
  PageWatcher() = default;
  virtual ~PageWatcher() = default;
  PageWatcher(const PageWatcher&) = delete;
  PageWatcher& operator=(const PageWatcher&) = delete;

  // Called when the pages of the range have been freed. The range is not reused before it returns.
  virtual void pages_freed(std::uint64_t file_offset, std::uint64_t bytes) noexcept = 0;
};

class Arena {
 public:
  // Returns true once no work queued before the free can access the memory.
  using Quiescent = std::function<bool()>;

  // Devices of one node pass different `stagger` values, so that their buffers do not all start at
  // the same cache set.
  Arena(DeviceAddress base, std::uint64_t capacity, std::uint32_t stagger = 0);
  ~Arena();

  // Returns the address of a new allocation, which is a multiple of 128. Allocations share no page.
  // Throws SynError(synInvalidArgument) for 0 bytes, and SynError(synOutOfDeviceMemory), whose text
  // begins with `what`.
  [[nodiscard]] DeviceAddress allocate(std::uint64_t bytes, const char* what = "synDeviceMalloc");

  // Frees an allocation. Does not block: the range is reused and its pages are freed once
  // `quiescent` returns true. Throws SynError(synInvalidArgument) for anything but the base address
  // of a live allocation.
  void release(DeviceAddress address, Quiescent quiescent);

  // Checks [address, address + bytes) and returns its position in the file. Throws
  // Error(hcclInvalidArgument), which names `what` and the allocation whose bounds the range
  // leaves. `bytes` may be 0.
  [[nodiscard]] MemoryRange resolve(DeviceAddress address, std::uint64_t bytes, const char* what);

  // Returns the host address at which the program's own code can access [address, address + bytes),
  // which is valid until the allocation is freed. Throws Error(hcclInvalidArgument) as resolve()
  // does, and Error(hcclOutOfMemory).
  [[nodiscard]] std::byte* host_view(DeviceAddress address, std::uint64_t bytes);

  // Translates an address that the program passes: returns the device address that a host view
  // shows there, or `address` itself if it lies outside the range of host views. Does not check
  // allocations. Takes two comparisons. If the system refuses that range (see ViewSpace), views
  // count as host memory.
  [[nodiscard]] std::uint64_t behind_view(std::uint64_t address) const noexcept {
    if (is_device_address(address)) [[likely]]
      return address;
    const std::optional<std::uint64_t> offset = views_.offset_of(address);
    return offset ? base_ + *offset : address;
  }
  // Returns the device address that the view of a live allocation shows at `host_address`, or
  // nothing if there is no such view.
  [[nodiscard]] std::optional<DeviceAddress> find_seen_at(std::uint64_t host_address);

  // Frees the whole pages inside [address, address + bytes): they read as zeros from then on. No
  // work that uses the range may be queued. Throws Error(hcclInvalidArgument) as resolve() does,
  // and Error(hcclSystemError) if the system refuses.
  void trim(DeviceAddress address, std::uint64_t bytes);

  // Sets whether children forked from now on, until the range is freed, get a private copy of it at
  // the address of its host view. By default they have nothing mapped there. Throws as host_view()
  // does.
  void keep_at_fork(DeviceAddress address, std::uint64_t bytes, bool keep);

  // Lock and unlock the arena around a fork(), as fork_snapshot.cpp does: both processes hold the
  // lock in between. lock_for_fork() returns the number of bytes that the child keeps.
  [[nodiscard]] std::uint64_t lock_for_fork();
  void unlock_after_fork() noexcept { mutex_.unlock(); }
  // Makes the copies. Returns false if there is no memory for one, which is then left unmapped.
  // Uses no heap. Called in the child.
  [[nodiscard]] bool copy_kept() const noexcept;
  // Unmaps the copies. Called in the child.
  void drop_kept() const noexcept;

  // Moves every allocation that overlaps `range` (file offsets) to fresh pages, so that later
  // writes of a stopped peer to the old ones have no effect. The old pages stay until the
  // allocation is freed: other ranks' operations may be reading them. Throws
  // Error(hcclOutOfMemory).
  void move_to_fresh_pages(MemoryRange range);
  // Copies an operation's result to the allocation's current pages if the allocation has moved
  // since the operation resolved its memory to `before`.
  void copy_if_moved(DeviceAddress address, const Placement& before, std::uint64_t bytes);

  // Frees released allocations that have become quiescent.
  void collect();

  // Registers a watcher. After unwatch() returns, the watcher is not called.
  void watch(PageWatcher& watcher);
  void unwatch(PageWatcher& watcher);

  [[nodiscard]] std::uint64_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::uint64_t free_bytes() const noexcept {
    return capacity_ - allocated_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] DeviceAddress base() const noexcept { return base_; }
  [[nodiscard]] const std::shared_ptr<ArenaView>& view() const noexcept { return view_; }

  // Returns the position of an address that a queued operation uses, just before the operation
  // runs. Also finds freed allocations that still wait for the operation.
  [[nodiscard]] Placement place(DeviceAddress address);
  // Returns true only if place() would return the same placement. May return false even then.
  [[nodiscard]] bool is_current(const Placement& placement) const noexcept {
    return placement.version == version_.load(std::memory_order_acquire);
  }
  [[nodiscard]] std::uint64_t file_offset(DeviceAddress address) {
    return place(address).file_offset;
  }

 private:
  struct Allocation {
    std::uint64_t requested = 0;    // bytes the program asked for
    std::uint64_t lead = 0;         // bytes from the first page to the address
    std::uint64_t bytes = 0;        // whole pages
    std::uint64_t file_offset = 0;  // of the first page
    std::uint32_t serial = 0;       // number of the pages; changes when they are replaced
    bool live = true;
    Quiescent quiescent;
    std::vector<std::uint64_t> left_behind;  // file offsets of earlier pages
    HostView view;                           // if the program requested one
  };
  using Allocations = std::map<std::uint64_t, Allocation>;  // by offset of the first page

  Allocations::iterator find(std::uint64_t offset);
  // Returns the allocation of a range that resolve() has found. Throws Error(hcclInvalidArgument)
  // if it was freed meanwhile.
  [[nodiscard]] Allocations::value_type& require_live(DeviceAddress address);
  void map_view(Allocations::value_type& entry);
  // Calls visit(view, file offset, bytes) for every range of pages that children keep.
  template <class Visit>
  void for_each_kept(Visit visit) const;
  void collect_locked();
  // Frees the pages and calls the watchers. Returns false and sets errno if the system refuses.
  bool give_back(std::uint64_t file_offset, std::uint64_t bytes) noexcept;
  void retire_pages(std::uint64_t file_offset, std::uint64_t bytes);
  // Puts an allocation into the thread's look-up cache. Returns the placement of `offset`.
  [[nodiscard]] Placement remember(const Allocations::value_type& entry,
                                   std::uint64_t offset) const;
  [[nodiscard]] std::string describe(const Allocations::value_type& entry) const;

  DeviceAddress base_;
  std::uint64_t capacity_;
  std::shared_ptr<ArenaView> view_;
  std::mutex mutex_;
  ViewSpace views_;  // outlives the views of the allocations
  Allocations allocations_;
  AddressAllocator addresses_;
  AddressAllocator fresh_pages_;  // file offsets past the capacity, for move_to_fresh_pages
  std::atomic<std::uint64_t> allocated_{0};
  std::uint32_t next_serial_ = 1;
  // Changes with the allocations; a cached look-up is valid while this number is the same.
  std::atomic<std::uint64_t> version_{1};
  std::uint64_t serial_;  // identifies the arena in those caches
  std::size_t retiring_ = 0;
  KeptRanges kept_;  // offsets in the arena
  std::vector<PageWatcher*> watchers_;
  std::uint64_t next_lead_;
};

}  // namespace hccl::device
