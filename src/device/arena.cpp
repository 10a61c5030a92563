// SPDX-License-Identifier: Apache-2.0
// Allocates, looks up, retires and relocates device memory.
#include "device/arena.h"

#include "base/error.h"
#include "base/log.h"
#include "base/syn_error.h"
#include "base/text.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include <fcntl.h>
#include <unistd.h>

namespace hccl::device {
namespace {

std::atomic<std::uint64_t> next_serial{1};

constexpr std::uint64_t kLeadStep = std::uint64_t{6} * 64;  // six cache lines

// An allocation that a thread has looked up recently. Collectives resolve the same few buffers
// repeatedly.
struct CachedLookup {
  std::uint64_t serial = 0;
  std::uint64_t version = 0;
  std::uint64_t first = 0;
  std::uint64_t end = 0;
  std::uint64_t file_offset = 0;
  std::uint32_t pages = 0;  // the allocation's serial
  bool live = false;
};
constexpr std::size_t kCachedLookups = 4;
thread_local CachedLookup lookups[kCachedLookups];
thread_local std::size_t next_lookup = 0;

const CachedLookup* cached(std::uint64_t serial, std::uint64_t version, std::uint64_t offset) {
  for (const CachedLookup& lookup : lookups) {
    if (lookup.serial == serial && lookup.version == version && offset >= lookup.first &&
        offset < lookup.end) {
      return &lookup;
    }
  }
  return nullptr;
}

void copy_data(const ArenaView& view, std::uint64_t from, std::uint64_t to, std::uint64_t bytes) {
  const int file = view.file().get();
  std::vector<std::byte> buffer(1u << 20);
  const std::uint64_t end = from + bytes;
  for (std::uint64_t at = view.next_data(from); at < end; at = view.next_data(at)) {
    const auto want = std::min<std::uint64_t>(buffer.size(), end - at);
    const ssize_t got = pread(file, buffer.data(), want, static_cast<off_t>(at));
    if (got <= 0 || pwrite(file, buffer.data(), static_cast<std::size_t>(got),
                           static_cast<off_t>(to + (at - from))) != got) {
      throw Error(hcclOutOfMemory,
                  "no memory to move an allocation to fresh pages; free memory on this host");
    }
    at += static_cast<std::uint64_t>(got);
  }
}

}  // namespace

Arena::Arena(DeviceAddress base, std::uint64_t capacity, std::uint32_t stagger)
    : base_(base),
      capacity_(capacity),
      view_(ArenaView::open(create_memory_file("hccl-device", 2 * capacity))),
      views_(capacity),
      addresses_(0, capacity),
      fresh_pages_(capacity, 2 * capacity),
      serial_(next_serial.fetch_add(1)),
      next_lead_(std::uint64_t{stagger} * 2 * kLeadStep) {}

DeviceAddress Arena::allocate(std::uint64_t bytes, const char* what) {
  if (bytes == 0)
    throw SynError(synInvalidArgument, "synDeviceMalloc of 0 bytes; ask for at least 1");
  if (bytes > capacity_) {
    throw SynError(synOutOfDeviceMemory, text(what, " of ", bytes, " bytes: the device has ",
                                              capacity_, "; raise HCCL_DEVICE_MEMORY"));
  }
  const std::lock_guard lock(mutex_);
  collect_locked();
  // A tile reads and writes many buffers at the same offset. If all buffers started at the same
  // offset of a page, their lines would compete for the same few sets of the first-level cache.
  std::uint64_t lead = next_lead_ % kPageBytes;
  next_lead_ += kLeadStep;
  std::uint64_t pages = round_up(lead + bytes, kPageBytes);
  auto offset = addresses_.allocate(pages, pages >= kHugePageBytes ? kHugePageBytes : kPageBytes);
  if (!offset) {  // it may still fit without the lead and the large alignment
    lead = 0;
    pages = round_up(bytes, kPageBytes);
    offset = addresses_.allocate(pages, kPageBytes);
  }
  if (!offset) {
    throw SynError(synOutOfDeviceMemory,
                   text(what, " of ", bytes, " bytes: ", free_bytes(), " of ", capacity_,
                        " are free, but not contiguous; free memory or raise "
                        "HCCL_DEVICE_MEMORY"));
  }
  allocations_.emplace(
      *offset, Allocation{bytes, lead, pages, *offset, next_serial_++, true, nullptr, {}, {}});
  allocated_.fetch_add(pages, std::memory_order_relaxed);
  version_.fetch_add(1, std::memory_order_release);
  return base_ + *offset + lead;
}

void Arena::release(DeviceAddress address, Quiescent quiescent) {
  const std::lock_guard lock(mutex_);
  const auto entry = address >= base_ ? find(address - base_) : allocations_.end();
  if (entry == allocations_.end() || !entry->second.live ||
      address - base_ != entry->first + entry->second.lead) {
    throw SynError(synInvalidArgument,
                   text("synDeviceFree of 0x", std::hex, address,
                        ": not the start of an allocation; pass what synDeviceMalloc returned, "
                        "once"));
  }
  kept_.remove(entry->first, entry->first + entry->second.bytes);
  entry->second.live = false;
  entry->second.quiescent = std::move(quiescent);
  allocated_.fetch_sub(entry->second.bytes, std::memory_order_relaxed);
  ++retiring_;
  version_.fetch_add(1, std::memory_order_release);
  try {
    collect_locked();
  } catch (const std::bad_alloc&) {
    // The allocation is released already; a later call collects its range.
  }
}

void Arena::collect() {
  const std::lock_guard lock(mutex_);
  collect_locked();
}

void Arena::watch(PageWatcher& watcher) {
  const std::lock_guard lock(mutex_);
  watchers_.push_back(&watcher);
}

void Arena::unwatch(PageWatcher& watcher) {
  const std::lock_guard lock(mutex_);
  std::erase(watchers_, &watcher);
}

void Arena::collect_locked() {
  if (retiring_ == 0) return;
  for (auto entry = allocations_.begin(); entry != allocations_.end();) {
    const Allocation& allocation = entry->second;
    if (allocation.live || !allocation.quiescent()) {
      ++entry;
      continue;
    }
    retire_pages(allocation.file_offset, allocation.bytes);
    for (const std::uint64_t offset : allocation.left_behind)
      retire_pages(offset, allocation.bytes);
    if (allocation.file_offset == entry->first) {
      addresses_.release(entry->first, allocation.bytes);
    } else {  // it moved away from a stopped peer, which may still write to the range
      fresh_pages_.release(allocation.file_offset, allocation.bytes);
    }
    entry = allocations_.erase(entry);
    --retiring_;
    version_.fetch_add(1, std::memory_order_release);
  }
}

bool Arena::give_back(std::uint64_t file_offset, std::uint64_t bytes) noexcept {
  view_->forget(file_offset, bytes);
  const int result = fallocate(view_->file().get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                               static_cast<off_t>(file_offset), static_cast<off_t>(bytes));
  const int error = errno;
  // Notify the watchers only now: before the pages were freed, a user of a neighbouring allocation
  // could have registered them again.
  for (PageWatcher* const watcher : watchers_) watcher->pages_freed(file_offset, bytes);
  errno = error;
  return result == 0;
}

void Arena::retire_pages(std::uint64_t file_offset, std::uint64_t bytes) {
  if (give_back(file_offset, bytes)) return;
  log(LogLevel::warning, "device", "cannot give back ", bytes,
      " bytes of device memory: ", system_error_text(errno));
}

Arena::Allocations::iterator Arena::find(std::uint64_t offset) {
  auto entry = allocations_.upper_bound(offset);
  if (entry == allocations_.begin()) return allocations_.end();
  --entry;
  return offset < entry->first + entry->second.bytes ? entry : allocations_.end();
}

std::string Arena::describe(const Allocations::value_type& entry) const {
  return text("allocation 0x", std::hex, base_ + entry.first + entry.second.lead, std::dec, " of ",
              entry.second.requested, " bytes");
}

Placement Arena::remember(const Allocations::value_type& entry, std::uint64_t offset) const {
  const Allocation& allocation = entry.second;
  const std::uint64_t first = entry.first + allocation.lead;
  lookups[next_lookup++ % kCachedLookups] = {serial_,
                                             version_.load(std::memory_order_relaxed),
                                             first,
                                             first + allocation.requested,
                                             allocation.file_offset + allocation.lead,
                                             allocation.serial,
                                             allocation.live};
  return {allocation.file_offset + (offset - entry.first), allocation.serial,
          version_.load(std::memory_order_relaxed)};
}

MemoryRange Arena::resolve(DeviceAddress address, std::uint64_t bytes, const char* what) {
  const std::uint64_t offset = address - base_;
  const CachedLookup* hit = cached(serial_, version_.load(std::memory_order_acquire), offset);
  if (hit != nullptr && hit->live && bytes <= hit->end - offset) {
    return {hit->file_offset + (offset - hit->first), bytes};
  }
  const std::lock_guard lock(mutex_);
  const auto entry = address >= base_ && offset < capacity_ ? find(offset) : allocations_.end();
  const bool found = entry != allocations_.end();
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
                                          " bytes leaves ", describe(*entry), " by ", bytes - left,
                                          " bytes; check the count and the type"));
  }
  return {remember(*entry, offset).file_offset, bytes};
}

Placement Arena::place(DeviceAddress address) {
  const std::uint64_t offset = address - base_;
  const CachedLookup* hit = cached(serial_, version_.load(std::memory_order_acquire), offset);
  if (hit != nullptr) return {hit->file_offset + (offset - hit->first), hit->pages, hit->version};
  const std::lock_guard lock(mutex_);
  const auto entry = find(offset);
  // find() does not find an empty range at the end of an allocation.
  return entry == allocations_.end() ? Placement{offset, 0} : remember(*entry, offset);
}

void Arena::copy_if_moved(DeviceAddress address, const Placement& before, std::uint64_t bytes) {
  if (is_current(before)) return;
  const Placement now = place(address);
  if (now.file_offset == before.file_offset) return;
  for (std::uint64_t at = 0; at < bytes; at += ArenaView::kLongestSpan) {
    const std::uint64_t piece = std::min<std::uint64_t>(ArenaView::kLongestSpan, bytes - at);
    view_->populate(now.file_offset + at, piece, true);
    std::memcpy(view_->at(now.file_offset + at), view_->at(before.file_offset + at), piece);
  }
}

void Arena::move_to_fresh_pages(MemoryRange range) {
  const std::lock_guard lock(mutex_);
  for (auto& [offset, allocation] : allocations_) {
    if (allocation.file_offset >= range.file_offset + range.bytes ||
        range.file_offset >= allocation.file_offset + allocation.bytes) {
      continue;
    }
    const auto fresh = fresh_pages_.allocate(allocation.bytes, kPageBytes);
    if (!fresh)
      throw Error(hcclOutOfMemory,
                  "the file has no room to move an allocation away from a stopped peer");
    copy_data(*view_, allocation.file_offset, *fresh, allocation.bytes);
    allocation.view.move_to(view_->file(), *fresh);
    // The old range is never used again: the stopped peer may write there at any time.
    allocation.left_behind.push_back(allocation.file_offset);
    allocation.file_offset = *fresh;
    allocation.serial = next_serial_++;
    version_.fetch_add(1, std::memory_order_release);
  }
}

}  // namespace hccl::device
