// SPDX-License-Identifier: Apache-2.0
#include "device/arena_pages.h"

#include "base/error.h"
#include "base/log.h"
#include "base/numa.h"
#include "base/text.h"
#include "device/address.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace hccl::device {
namespace {

void copy_data(const ArenaView& view, std::uint64_t from, std::uint64_t to, std::uint64_t bytes) {
  const int file = view.file().get();
  std::vector<std::byte> buffer(1u << 20);
  const std::uint64_t end = from + bytes;
  for (std::uint64_t at = view.next_data(from); at < end; at = view.next_data(at)) {
    const auto want = std::min<std::uint64_t>(buffer.size(), end - at);
    const ssize_t got = pread(file, buffer.data(), want, static_cast<off_t>(at));
    if (got <= 0 || pwrite(file, buffer.data(), static_cast<std::size_t>(got),
                           static_cast<off_t>(to + (at - from))) != got) {
      throw Error(
          hcclOutOfMemory,
          "too little memory to move the buffer of a failed operation to new pages; free memory "
          "on this host");
    }
    at += static_cast<std::uint64_t>(got);
  }
}

// Allows huge pages only where a whole huge page is about to be written. Elsewhere a huge page
// would allocate memory for holes.
void advise_huge_pages(std::byte* memory, std::uint64_t bytes) noexcept {
  const auto start = reinterpret_cast<std::uint64_t>(memory);
  const std::uint64_t first = round_up(start, kHugePageBytes);
  const std::uint64_t end = (start + bytes) / kHugePageBytes * kHugePageBytes;
  if (first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
}

// Copies a range of the file to memory that contains only zeros. Skips holes. Returns false if a
// read fails.
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

ArenaPages::ArenaPages(std::uint64_t capacity, std::uint64_t keep_bytes)
    : view_(ArenaView::open(create_memory_file("hccl-device", 2 * capacity))),
      fresh_(capacity, 2 * capacity),
      keep_bytes_(keep_bytes) {
  // Another rank may be the first to write to an output buffer. Without a preferred node, the pages
  // would then lie on that rank's NUMA node.
  if (const std::optional<int> node = own_numa_node()) {
    const bool placed = prefer_numa_node(view_->file(), 2 * capacity, *node);
    log(LogLevel::info, "device", "device memory ", placed ? "lies" : "cannot be placed",
        " on NUMA node ", *node);
  }
}

bool ArenaPages::give_back(std::uint64_t offset, std::uint64_t bytes) noexcept {
  view_->forget(offset, bytes);
  const int result = fallocate(view_->file().get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                               static_cast<off_t>(offset), static_cast<off_t>(bytes));
  const int error = errno;
  // Notifies the watchers only after the pages have been freed: otherwise a user of a neighbouring
  // allocation could register the old pages again.
  for (PageWatcher* const watcher : watchers_) watcher->pages_freed(offset, bytes);
  errno = error;
  return result == 0;
}

void ArenaPages::retire(std::uint64_t offset, std::uint64_t bytes) {
  if (give_back(offset, bytes)) return;
  log(LogLevel::warning, "device", "cannot free ", bytes,
      " bytes of device memory: ", system_error_text(errno));
}

void ArenaPages::keep(std::uint64_t offset, std::uint64_t bytes) {
  if (!watchers_.empty()) return retire(offset, bytes);
  kept_.add(offset, offset + bytes);
  kept_bytes_ += bytes;
  while (kept_bytes_ > keep_bytes_) {
    const auto [begin, end] = kept_.last();
    const std::uint64_t excess = std::min(kept_bytes_ - keep_bytes_, end - begin);
    reuse(end - excess, excess);
    retire(end - excess, excess);
  }
}

std::uint64_t ArenaPages::copy_to_fresh(std::uint64_t offset, std::uint64_t bytes) {
  const auto fresh = fresh_.allocate(bytes, kPageBytes);
  if (!fresh)
    throw Error(hcclOutOfMemory,
                "device memory has no room to move the buffer of a failed operation to new pages; "
                "free device memory or raise HCCL_DEVICE_MEMORY");
  copy_data(*view_, offset, *fresh, bytes);
  return *fresh;
}

bool ArenaPages::map_copy(std::byte* address, std::uint64_t offset,
                          std::uint64_t bytes) const noexcept {
  void* const mapped =
      mmap(address, bytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (mapped == address && copy_data_to(address, *view_, offset, bytes)) return true;
  if (mapped != MAP_FAILED) munmap(mapped, bytes);
  return false;
}

}  // namespace hccl::device
