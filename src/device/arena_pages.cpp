// SPDX-License-Identifier: Apache-2.0
// Maps allocations for the program's own code and for its children, and frees pages.
#include "base/error.h"
#include "base/text.h"
#include "device/arena.h"
#include "device/fork_snapshot.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace hccl::device {

Arena::~Arena() { forget_at_fork(*this); }

Arena::Allocations::value_type& Arena::require_live(DeviceAddress address) {
  const auto entry = find(address - base_);
  if (entry == allocations_.end() || !entry->second.live)
    throw Error(hcclInvalidArgument,
                "device_address: the memory was freed meanwhile; look for a synDeviceFree on "
                "another thread");
  return *entry;
}

void Arena::map_view(Allocations::value_type& entry) {
  Allocation& allocation = entry.second;
  if (allocation.view.base() == nullptr)
    allocation.view = HostView(view_->file(), allocation.file_offset, allocation.bytes,
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
  const auto shows = [&](const Allocations::value_type& entry) {
    const auto view = reinterpret_cast<std::uint64_t>(entry.second.view.base());
    return view != 0 && entry.second.live && host_address - view < entry.second.bytes;
  };
  const auto offset = views_.offset_of(host_address);
  const auto entry =
      offset ? find(*offset) : std::find_if(allocations_.begin(), allocations_.end(), shows);
  if (entry == allocations_.end() || !shows(*entry)) return std::nullopt;
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
  // The new serial makes peers forget the old pages (ArenaView::follow).
  allocation.serial = next_serial_++;
  version_.fetch_add(1, std::memory_order_release);
  if (!give_back(first, end - first)) {
    throw Error(hcclSystemError, text("cannot give back ", end - first,
                                      " bytes of device memory: ", system_error_text(errno),
                                      "; keep them, or free the allocation"));
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
void Arena::for_each_kept(Visit visit) const {
  kept_.for_each_rounded(kPageBytes, [&](std::uint64_t begin, std::uint64_t end) {
    // Adjacent allocations may have their pages at unrelated file offsets.
    for (auto entry = std::prev(allocations_.upper_bound(begin)); begin < end; ++entry) {
      const Allocation& allocation = entry->second;
      const std::uint64_t piece = std::min(end, entry->first + allocation.bytes) - begin;
      const std::uint64_t inside = begin - entry->first;
      visit(allocation.view.base() + inside, allocation.file_offset + inside, piece);
      begin += piece;
    }
  });
}

namespace {

// Allows huge pages only where a whole one is about to be written. Elsewhere they would enlarge
// memory that is mostly holes.
void advise_huge_pages(std::byte* memory, std::uint64_t bytes) noexcept {
  const auto start = reinterpret_cast<std::uint64_t>(memory);
  const std::uint64_t first = round_up(start, kHugePageBytes);
  const std::uint64_t end = (start + bytes) / kHugePageBytes * kHugePageBytes;
  if (first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
}

// Copies the file's data in the range to memory that is all zeros. Returns false if a read fails.
bool copy_data_to(std::byte* to, const ArenaView& view, std::uint64_t offset,
                  std::uint64_t bytes) noexcept {
  const int file = view.file().get();
  const std::uint64_t end = offset + bytes;
  for (std::uint64_t at = view.next_data(offset); at < end; at = view.next_data(at)) {
    const off_t hole = lseek(file, static_cast<off_t>(at), SEEK_HOLE);
    const std::uint64_t stop = hole < 0 ? end : std::min(end, static_cast<std::uint64_t>(hole));
    if (at < stop) advise_huge_pages(to + (at - offset), stop - at);
    while (at < stop) {
      const ssize_t got = pread(file, to + (at - offset), stop - at, static_cast<off_t>(at));
      if (got > 0) {
        at += static_cast<std::uint64_t>(got);
      } else if (got == 0 || errno != EINTR) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace

// The views themselves are not inherited, so their addresses are free.
bool Arena::copy_kept() const noexcept {
  bool complete = true;
  for_each_kept([&](std::byte* place, std::uint64_t offset, std::uint64_t bytes) {
    void* const mapped =
        mmap(place, bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (mapped == place && copy_data_to(place, *view_, offset, bytes)) return;
    if (mapped != MAP_FAILED) munmap(mapped, bytes);
    complete = false;
  });
  return complete;
}

void Arena::drop_kept() const noexcept {
  for_each_kept([](std::byte* place, std::uint64_t, std::uint64_t bytes) { munmap(place, bytes); });
}

}  // namespace hccl::device
