// SPDX-License-Identifier: Apache-2.0
// The memory of one emulated device: a sparse memory file, the allocations in it, and where each
// lies in the file. Pages cost nothing until they are written.
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

// Where an address lies now.
struct Placement {
  std::uint64_t file_offset = 0;
  std::uint32_t serial =
      0;  // of the pages there; tells peers whether they know them (ArenaView::follow)
  std::uint64_t version = 0;  // of the allocations when it was found
};

// Hears of pages that go. Called with the arena's lock held, which it must not ask for.
class PageWatcher {
 public:
  PageWatcher() = default;
  virtual ~PageWatcher() = default;
  PageWatcher(const PageWatcher&) = delete;
  PageWatcher& operator=(const PageWatcher&) = delete;

  // The pages of the range have been given back, and it is nobody's until this returns.
  virtual void pages_left(std::uint64_t file_offset, std::uint64_t bytes) noexcept = 0;
};

class Arena {
 public:
  // True once nothing queued before the free can touch the memory any more.
  using Quiescent = std::function<bool()>;

  // Devices of one box pass different `stagger` values, so that their buffers do not all start at
  // the same cache set.
  Arena(DeviceAddress base, std::uint64_t capacity, std::uint32_t stagger = 0);
  ~Arena();

  // Throws SynError(synOutOfDeviceMemory) with `what` asked for it. Allocations share no page and
  // start at a multiple of 128 bytes.
  [[nodiscard]] DeviceAddress allocate(std::uint64_t bytes, const char* what = "synDeviceMalloc");

  // Returns at once; the range is reused and its pages given back when `quiescent`. Throws
  // SynError(synInvalidArgument) for anything but the base address of an allocation.
  void release(DeviceAddress address, Quiescent quiescent);

  // Checks [address, address + bytes) and finds it in the file. Throws Error(hcclInvalidArgument)
  // naming `what` and the allocation it leaves. `bytes` may be 0.
  [[nodiscard]] MemoryRange resolve(DeviceAddress address, std::uint64_t bytes, const char* what);

  // Where [address, address + bytes) lies for the program's own code, until it is freed. Throws
  // Error: hcclInvalidArgument as resolve() does, hcclOutOfMemory.
  [[nodiscard]] std::byte* host_view(DeviceAddress address, std::uint64_t bytes);

  // Translates an address that a program passes as memory: returns the device address behind it if
  // it lies in the range of host views, else `address` itself. Does not check allocations. Takes
  // two comparisons. Where the system refuses that range (see ViewSpace), views are host memory.
  [[nodiscard]] std::uint64_t behind_view(std::uint64_t address) const noexcept {
    if (is_device_address(address)) [[likely]]
      return address;
    const std::optional<std::uint64_t> offset = views_.offset_of(address);
    return offset ? base_ + *offset : address;
  }
  // The device address of what the view of a live allocation shows at `host_address`, wherever it
  // is mapped; nothing if there is no such view.
  [[nodiscard]] std::optional<DeviceAddress> find_seen_at(std::uint64_t host_address);

  // Gives the whole pages inside [address, address + bytes) back: they read as zeros from then on.
  // No work that uses the range may be queued. Throws Error: hcclInvalidArgument as resolve() does,
  // hcclSystemError if the system refuses.
  void trim(DeviceAddress address, std::uint64_t bytes);

  // Sets whether children forked from now on find a private copy of the range in its host view
  // (until it is freed); by default they find nothing mapped. Throws as host_view() does.
  void keep_at_fork(DeviceAddress address, std::uint64_t bytes, bool keep);

  // Around a fork(), for fork_snapshot.cpp. The lock of the arena is held in between, by both
  // processes. Returns the bytes that the child keeps.
  [[nodiscard]] std::uint64_t lock_for_fork();
  void unlock_after_fork() noexcept { mutex_.unlock(); }
  // In the child: makes the copies; false if there is no memory for one, which is then missing.
  // Allocates nothing.
  [[nodiscard]] bool copy_kept() const noexcept;
  // In the child: unmaps them again.
  void drop_kept() const noexcept;

  // Moves every allocation that overlaps `range` (file offsets) to fresh pages: what a stopped peer
  // still writes to the old ones reaches nobody. The old pages stay until the allocation is freed:
  // operations of others may be reading them.
  void move_to_fresh_pages(MemoryRange range);
  // For an operation that named its result's memory when it lay at `before`: if the allocation has
  // moved since, the result follows.
  void bring_after(DeviceAddress address, const Placement& before, std::uint64_t bytes);

  // Gives back what has become quiescent.
  void collect();

  // From now on, and no longer: after unwatch() the watcher is not called.
  void watch(PageWatcher& watcher);
  void unwatch(PageWatcher& watcher);

  [[nodiscard]] std::uint64_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::uint64_t free_bytes() const noexcept {
    return capacity_ - allocated_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] DeviceAddress base() const noexcept { return base_; }
  [[nodiscard]] const std::shared_ptr<ArenaView>& view() const noexcept { return view_; }

  // Resolves the addresses with which an operation was queued, before it runs: finds also freed
  // allocations whose memory it still owns.
  [[nodiscard]] Placement place(DeviceAddress address);
  // Returns whether it would be found again. False may be wrong.
  [[nodiscard]] bool is_current(const Placement& placement) const noexcept {
    return placement.version == version_.load(std::memory_order_acquire);
  }
  [[nodiscard]] std::uint64_t file_offset(DeviceAddress address) {
    return place(address).file_offset;
  }

 private:
  struct Allocation {
    std::uint64_t requested = 0;    // bytes the program asked for
    std::uint64_t lead = 0;         // bytes between its first page and its address
    std::uint64_t bytes = 0;        // whole pages
    std::uint64_t file_offset = 0;  // of its first page
    std::uint32_t serial = 0;       // of the pages: a new one when they are new
    bool live = true;
    Quiescent quiescent;
    std::vector<std::uint64_t> left_behind;  // file offsets of pages it has moved away from
    HostView view;                           // if the program has asked for it
  };
  using Allocations = std::map<std::uint64_t, Allocation>;  // by offset of the first page

  Allocations::iterator find(std::uint64_t offset);
  // Returns the allocation of a range that resolve() has found. Throws if it was freed meanwhile.
  [[nodiscard]] Allocations::value_type& require_live(DeviceAddress address);
  void map_view(Allocations::value_type& entry);
  // Calls visit(view, file offset, bytes) for all pages that children keep.
  template <class Visit>
  void for_each_kept(Visit visit) const;
  void collect_locked();
  // False, with errno, if the system refuses.
  bool give_back(std::uint64_t file_offset, std::uint64_t bytes) noexcept;
  void retire_pages(std::uint64_t file_offset, std::uint64_t bytes);
  // Puts an allocation into the thread's cache of look-ups; returns where `offset` is in the file.
  [[nodiscard]] Placement remember(const Allocations::value_type& entry,
                                   std::uint64_t offset) const;
  [[nodiscard]] std::string describe(const Allocations::value_type& entry) const;

  DeviceAddress base_;
  std::uint64_t capacity_;
  std::shared_ptr<ArenaView> view_;
  std::mutex mutex_;
  ViewSpace views_;  // outlives the views, which are in the allocations
  Allocations allocations_;
  AddressAllocator addresses_;
  AddressAllocator fresh_pages_;  // file offsets past the capacity, for move_to_fresh_pages
  std::atomic<std::uint64_t> allocated_{0};
  std::uint32_t next_serial_ = 1;
  std::atomic<std::uint64_t> version_{
      1};                 // changes with the allocations: validates threads' cached look-ups
  std::uint64_t serial_;  // tells arenas apart in those caches
  std::size_t retiring_ = 0;
  KeptRanges kept_;  // offsets of the arena
  std::vector<PageWatcher*> watchers_;
  std::uint64_t next_lead_;
};

}  // namespace hccl::device
