// SPDX-License-Identifier: Apache-2.0
#include "device/arena.h"

#include "base/error.h"
#include "base/syn_error.h"
#include "base/text.h"
#include "device/fork_snapshot.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include <sys/mman.h>

namespace hccl::device {

Arena::Arena(DeviceAddress base, std::uint64_t capacity, std::uint32_t stagger,
             std::uint64_t keep_bytes)
    : base_(base),
      capacity_(capacity),
      pages_(capacity, round_up(keep_bytes, kPageBytes)),
      views_(capacity),
      allocations_(capacity, stagger) {}

Arena::~Arena() { forget_at_fork(*this); }

DeviceAddress Arena::allocate(std::uint64_t bytes, const char* what) {
  if (bytes == 0) throw SynError(synInvalidArgument, text(what, " of 0 bytes; request at least 1"));
  if (bytes > capacity_) {
    throw SynError(synOutOfDeviceMemory, text(what, " of ", bytes, " bytes: the device has ",
                                              capacity_, " bytes; raise HCCL_DEVICE_MEMORY"));
  }
  const std::lock_guard lock(mutex_);
  collect_locked();
  Entry* const entry = allocations_.allocate(bytes);
  if (entry == nullptr) {
    throw SynError(synOutOfDeviceMemory,
                   text(what, " of ", bytes, " bytes: ", free_bytes(), " of ", capacity_,
                        " bytes are free, but no free range is long enough; free memory or raise "
                        "HCCL_DEVICE_MEMORY"));
  }
  try {
    pages_.reuse(entry->first, entry->second.bytes);
  } catch (const std::bad_alloc&) {
    entry->second.live = false;
    entry->second.quiescent = [] { return true; };
    ++retiring_;
    throw;
  }
  allocated_.fetch_add(entry->second.bytes, std::memory_order_relaxed);
  end_version();
  return base_ + entry->first + entry->second.lead;
}

void Arena::release(DeviceAddress address, Quiescent quiescent) {
  const std::lock_guard lock(mutex_);
  Entry* const entry = address >= base_ ? allocations_.find(address - base_) : nullptr;
  if (entry == nullptr || !entry->second.live ||
      address - base_ != entry->first + entry->second.lead) {
    throw SynError(synInvalidArgument,
                   text("synDeviceFree of 0x", std::hex, address,
                        ": this is not the start of an allocation; pass each address from "
                        "synDeviceMalloc only once"));
  }
  kept_.remove(entry->first, entry->first + entry->second.bytes);
  entry->second.live = false;
  entry->second.quiescent = std::move(quiescent);
  allocated_.fetch_sub(entry->second.bytes, std::memory_order_relaxed);
  ++retiring_;
  end_version();
  try {
    collect_locked();
  } catch (const std::bad_alloc&) {
    // Not an error: the allocation has been released, and a later call frees its range.
  }
}

void Arena::collect() {
  const std::lock_guard lock(mutex_);
  collect_locked();
}

void Arena::watch(PageWatcher& watcher) {
  const std::lock_guard lock(mutex_);
  pages_.watch(watcher);
}

void Arena::unwatch(PageWatcher& watcher) {
  const std::lock_guard lock(mutex_);
  pages_.unwatch(watcher);
}

void Arena::collect_locked() {
  if (retiring_ == 0) return;
  for (auto entry = allocations_.begin(); entry != allocations_.end();) {
    const Allocation& allocation = entry->second;
    if (allocation.live || !allocation.quiescent()) {
      ++entry;
      continue;
    }
    // If move_to_fresh_pages() has moved the allocation, the stopped peer may write to the original
    // range after resuming. That range is therefore never reused.
    const bool has_moved = allocation.file_offset != entry->first;
    if (has_moved) {
      pages_.retire(allocation.file_offset, allocation.bytes);
      for (const std::uint64_t offset : allocation.left_behind)
        pages_.retire(offset, allocation.bytes);
      pages_.release_fresh(allocation.file_offset, allocation.bytes);
    } else {
      pages_.keep(allocation.file_offset, allocation.bytes);
    }
    entry = allocations_.erase(entry, !has_moved);
    --retiring_;
    end_version();
  }
}

std::string Arena::describe(const Entry& entry) const {
  return text("allocation 0x", std::hex, base_ + entry.first + entry.second.lead, std::dec, " of ",
              entry.second.requested, " bytes");
}

Placement Arena::remember(const Entry& entry, std::uint64_t offset) const {
  const Allocation& allocation = entry.second;
  const std::uint64_t version = version_.load(std::memory_order_relaxed);
  const std::uint64_t first = entry.first + allocation.lead;
  lookups_.insert(version,
                  {first, first + allocation.requested, allocation.file_offset + allocation.lead,
                   allocation.serial, allocation.live});
  return {allocation.file_offset + (offset - entry.first), allocation.serial, version};
}

MemoryRange Arena::resolve(DeviceAddress address, std::uint64_t bytes, const char* what) {
  const std::uint64_t offset = address - base_;
  const LookupCache::Entry* const hit =
      lookups_.find(version_.load(std::memory_order_acquire), offset);
  if (hit != nullptr && hit->live && bytes <= hit->end - offset) {
    return {hit->file_offset + (offset - hit->first), bytes};
  }
  const std::lock_guard lock(mutex_);
  const Entry* const entry =
      address >= base_ && offset < capacity_ ? allocations_.find(offset) : nullptr;
  const bool found = entry != nullptr;
  const std::uint64_t first = found ? entry->first + entry->second.lead : 0;
  if (!found || !entry->second.live || offset < first || offset - first > entry->second.requested) {
    throw Error(
        hcclInvalidArgument,
        text(what, " 0x", std::hex, address, std::dec, " is not in allocated device memory",
             found && !entry->second.live ? text(" (", describe(*entry), " was freed)") : "",
             "; pass an address from synDeviceMalloc"));
  }
  const std::uint64_t left = entry->second.requested - (offset - first);
  if (bytes > left) {
    throw Error(hcclInvalidArgument, text(what, " 0x", std::hex, address, std::dec, " + ", bytes,
                                          " bytes exceeds ", describe(*entry), " by ", bytes - left,
                                          " bytes; check the count and the type"));
  }
  return {remember(*entry, offset).file_offset, bytes};
}

Placement Arena::locate(DeviceAddress address) {
  const std::uint64_t offset = address - base_;
  const std::uint64_t version = version_.load(std::memory_order_acquire);
  if (const LookupCache::Entry* const hit = lookups_.find(version, offset); hit != nullptr)
    return {hit->file_offset + (offset - hit->first), hit->serial, version};
  const std::lock_guard lock(mutex_);
  const Entry* const entry = allocations_.find(offset);
  // An empty range at the end of an allocation may have no entry in the map.
  return entry == nullptr ? Placement{offset, 0} : remember(*entry, offset);
}

void Arena::copy_if_moved(DeviceAddress address, const Placement& before, std::uint64_t bytes) {
  if (is_current(before)) return;
  const Placement now = locate(address);
  if (now.file_offset == before.file_offset) return;
  for (std::uint64_t at = 0; at < bytes; at += ArenaView::kLongestSpan) {
    const std::uint64_t piece = std::min<std::uint64_t>(ArenaView::kLongestSpan, bytes - at);
    view()->populate(now.file_offset + at, piece, true);
    std::memcpy(view()->at(now.file_offset + at), view()->at(before.file_offset + at), piece);
  }
}

void Arena::move_to_fresh_pages(MemoryRange range) {
  const std::lock_guard lock(mutex_);
  for (auto& [offset, allocation] : allocations_) {
    if (allocation.file_offset >= range.file_offset + range.bytes ||
        range.file_offset >= allocation.file_offset + allocation.bytes) {
      continue;
    }
    const std::uint64_t fresh = pages_.copy_to_fresh(allocation.file_offset, allocation.bytes);
    allocation.view.move_to(view()->file(), fresh);
    // The old range is never reused, because the stopped peer may write to it after resuming.
    allocation.left_behind.push_back(allocation.file_offset);
    allocation.file_offset = fresh;
    allocations_.renumber(allocation);
    end_version();
  }
}

Arena::Entry& Arena::require_live(DeviceAddress address) {
  Entry* const entry = allocations_.find(address - base_);
  if (entry == nullptr || !entry->second.live)
    throw Error(hcclInvalidArgument,
                "device_address: the memory has just been freed; look for a synDeviceFree on "
                "another thread");
  return *entry;
}

void Arena::map_view(Entry& entry) {
  Allocation& allocation = entry.second;
  if (allocation.view.base() == nullptr)
    allocation.view = HostView(view()->file(), allocation.file_offset, allocation.bytes,
                               views_.address_at(entry.first));
}

std::byte* Arena::host_view(DeviceAddress address, std::uint64_t bytes) {
  static_cast<void>(resolve(address, bytes, "device_address"));
  const std::lock_guard lock(mutex_);
  auto& entry = require_live(address);
  map_view(entry);
  return entry.second.view.base() + (address - base_ - entry.first);
}

std::optional<DeviceAddress> Arena::find_seen_at(std::uint64_t host_address) {
  const std::lock_guard lock(mutex_);
  const auto shows = [&](const Entry& entry) {
    const auto view = reinterpret_cast<std::uint64_t>(entry.second.view.base());
    return view != 0 && entry.second.live && host_address - view < entry.second.bytes;
  };
  const Entry* entry = nullptr;
  if (const auto offset = views_.offset_of(host_address)) {
    entry = allocations_.find(*offset);
  } else if (const auto found = std::ranges::find_if(allocations_, shows);
             found != allocations_.end()) {
    entry = &*found;
  }
  if (entry == nullptr || !shows(*entry)) return std::nullopt;
  const auto view = reinterpret_cast<std::uint64_t>(entry->second.view.base());
  return base_ + entry->first + (host_address - view);
}

void Arena::trim(DeviceAddress address, std::uint64_t bytes) {
  static_cast<void>(resolve(address, bytes, "device_address"));
  const std::lock_guard lock(mutex_);
  auto& [start, allocation] = require_live(address);
  const std::uint64_t offset = allocation.file_offset + (address - base_ - start);
  const std::uint64_t first = round_up(offset, kPageBytes);
  const std::uint64_t end = (offset + bytes) / kPageBytes * kPageBytes;
  if (first >= end) return;
  // The new serial number makes peers forget which of the old pages they have populated
  // (ArenaView::follow).
  allocations_.renumber(allocation);
  end_version();
  if (!pages_.give_back(first, end - first)) {
    throw Error(hcclSystemError, text("cannot free ", end - first,
                                      " bytes of device memory: ", system_error_text(errno),
                                      "; keep the memory, or free the whole allocation"));
  }
}

void Arena::keep_at_fork(DeviceAddress address, std::uint64_t bytes, bool keep) {
  static_cast<void>(resolve(address, bytes, "device_address"));
  if (keep) copy_at_fork(*this);
  const std::lock_guard lock(mutex_);
  auto& entry = require_live(address);
  const std::uint64_t begin = address - base_;
  if (keep) {
    map_view(entry);
    kept_.add(begin, begin + bytes);
  } else {
    kept_.remove(begin, begin + bytes);
  }
}

std::uint64_t Arena::lock_for_fork() {
  mutex_.lock();
  return kept_.bytes();
}

template <class Visit>
void Arena::for_each_kept(Visit visit) {
  kept_.for_each_rounded(kPageBytes, [&](std::uint64_t begin, std::uint64_t end) {
    // Adjacent allocations may have their pages at unrelated file offsets.
    while (const Entry* const entry = begin < end ? allocations_.find(begin) : nullptr) {
      const auto& [first, allocation] = *entry;
      const std::uint64_t inside = begin - first;
      const std::uint64_t piece = std::min(end - begin, allocation.bytes - inside);
      visit(allocation.view.base() + inside, allocation.file_offset + inside, piece);
      begin += piece;
    }
  });
}

// A child does not inherit the views themselves, so their addresses are free in the child.
bool Arena::copy_kept() noexcept {
  bool complete = true;
  for_each_kept([&](std::byte* view, std::uint64_t offset, std::uint64_t bytes) {
    complete = pages_.map_copy(view, offset, bytes) && complete;
  });
  return complete;
}

void Arena::drop_kept() noexcept {
  for_each_kept([](std::byte* view, std::uint64_t, std::uint64_t bytes) { munmap(view, bytes); });
}

}  // namespace hccl::device
