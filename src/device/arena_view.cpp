// SPDX-License-Identifier: Apache-2.0
// Maps windows of a device's memory file, and records which pages are populated.
#include "device/arena_view.h"

#include "base/errno_advice.h"
#include "base/error.h"
#include "base/file_registry.h"
#include "base/text.h"
#include "device/address.h"
#include "device/populate.h"

#include <algorithm>
#include <cerrno>

#include <sys/mman.h>
#include <unistd.h>

namespace hccl::device {
namespace {

// Touches each page, for kernels without MADV_POPULATE_*.
void touch(std::byte* start, std::size_t bytes, bool write) noexcept {
  for (std::size_t at = 0; at < bytes; at += kPageBytes) {
    auto* word = reinterpret_cast<std::atomic<std::uint8_t>*>(start + at);
    if (write) {
      // Adding zero keeps the value, even if others write concurrently.
      word->fetch_add(0, std::memory_order_relaxed);
    } else {
      static_cast<void>(word->load(std::memory_order_relaxed));
    }
  }
}

void fill_page_tables(std::byte* start, std::size_t bytes, bool write) {
  if (populate_pages(start, bytes, write)) return;
  if (errno != EINVAL) {
    throw Error(hcclOutOfMemory, text("cannot allocate ", bytes, " bytes of device memory: ",
                                      system_error_text(errno), "; free memory on this host"));
  }
  touch(start, bytes, write);
}

}  // namespace

std::shared_ptr<ArenaView> ArenaView::open(const FileDescriptor& file) {
  return FileRegistry<ArenaView>::instance().get(file, [&](const FileIdentity& identity) {
    return std::shared_ptr<ArenaView>(new ArenaView(file.duplicate(), identity.bytes));
  });
}

ArenaView::ArenaView(FileDescriptor file, std::uint64_t bytes)
    : file_(std::move(file)), bytes_(bytes), windows_((bytes + kWindowBytes - 1) / kWindowBytes) {}

ArenaView::~ArenaView() {
  for (std::uint64_t index = 0; index < windows_.size(); ++index) {
    std::byte* base = windows_[index].base.load(std::memory_order_relaxed);
    if (base != nullptr) munmap(base, mapped_bytes(index));
  }
  FileRegistry<ArenaView>::instance().forget_expired();
}

std::size_t ArenaView::mapped_bytes(std::uint64_t index) const noexcept {
  // Windows overlap, so that a span which starts in one window is contiguous in that window.
  return std::min(kWindowBytes + kLongestSpan, bytes_ - index * kWindowBytes);
}

std::byte* ArenaView::map_window(std::uint64_t index) {
  const std::lock_guard lock(mutex_);
  Window& window = windows_.at(index);
  std::byte* base = window.base.load(std::memory_order_acquire);
  if (base != nullptr) return base;
  const std::size_t bytes = mapped_bytes(index);
  auto pages = std::make_unique<std::atomic<std::uint64_t>[]>(kWords);
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                      file_.get(), static_cast<off_t>(index * kWindowBytes));
  if (mapped == MAP_FAILED) {
    throw Error(hcclOutOfMemory, text("cannot map ", bytes >> 20, " MiB of device memory: ",
                                      system_error_text(errno), "; ", advice_on_mapping(errno)));
  }
  madvise(mapped, bytes, MADV_DONTDUMP);  // a core dump would touch every hole
  madvise(mapped, bytes, MADV_DONTFORK);
  madvise(mapped, bytes, MADV_HUGEPAGE);  // effective only if shared memory may use huge pages
  window.pages = std::move(pages);
  base = static_cast<std::byte*>(mapped);
  window.base.store(base, std::memory_order_release);
  return base;
}

namespace {

// Calls visit(window, word, mask) for every bitmap word that covers pages of the range, until a
// call returns false. Returns whether all calls returned true.
template <class Visit>
bool for_each_word(std::uint64_t offset, std::uint64_t bytes, Visit visit) {
  constexpr std::uint64_t kPagesPerWindow = ArenaView::kWindowBytes / kPageBytes;
  std::uint64_t page = offset / kPageBytes;
  const std::uint64_t end = (offset + bytes + kPageBytes - 1) / kPageBytes;
  while (page < end) {
    const std::uint64_t bit = page % 64;
    const std::uint64_t count = std::min<std::uint64_t>(64 - bit, end - page);
    const std::uint64_t mask = (count == 64 ? ~0ull : (1ull << count) - 1) << bit;
    if (!visit(page / kPagesPerWindow, page % kPagesPerWindow / 64, mask)) return false;
    page += count;
  }
  return true;
}

}  // namespace

bool ArenaView::populated_words(std::uint64_t offset, std::uint64_t bytes) const noexcept {
  return for_each_word(offset, bytes,
                       [&](std::uint64_t index, std::uint64_t word, std::uint64_t mask) {
                         const Window& window = windows_[index];
                         return window.base.load(std::memory_order_acquire) != nullptr &&
                                (window.pages[word].load(std::memory_order_relaxed) & mask) == mask;
                       });
}

void ArenaView::mark(std::uint64_t offset, std::uint64_t bytes, bool value) noexcept {
  for_each_word(offset, bytes, [&](std::uint64_t index, std::uint64_t word, std::uint64_t mask) {
    Window& window = windows_[index];
    if (window.base.load(std::memory_order_acquire) == nullptr) return true;
    if (value) {
      window.pages[word].fetch_or(mask, std::memory_order_relaxed);
    } else {
      window.pages[word].fetch_and(~mask, std::memory_order_relaxed);
    }
    return true;
  });
}

bool ArenaView::populate_slice(std::uint64_t offset, std::uint64_t bytes, bool write,
                               std::uint64_t* position) {
  const std::uint64_t first = offset / kPageBytes * kPageBytes;
  const std::uint64_t end = round_up(offset + bytes, kPageBytes);
  std::uint64_t at = std::max(*position, first);
  while (at < end) {
    const std::uint64_t window_end = (at / kWindowBytes + 1) * kWindowBytes;
    const std::uint64_t length = std::min({kSlice, end - at, window_end - at});
    *position = at + length;
    if (!populated(at, length)) {
      fill_page_tables(this->at(at), length, write);
      mark(at, length, true);
      return *position >= end;
    }
    at = *position;
  }
  return true;
}

void ArenaView::populate(std::uint64_t offset, std::uint64_t bytes, bool write) {
  std::uint64_t position = 0;
  while (!populate_slice(offset, bytes, write, &position)) {
  }
}

Content ArenaView::content(std::uint64_t offset, std::uint64_t bytes) const {
  const std::uint64_t end = offset + bytes;
  const std::uint64_t data = next_data(offset);
  if (data >= end) return Content::hole;
  if (data > offset) return Content::mixed;
  const off_t hole = lseek(file_.get(), static_cast<off_t>(offset), SEEK_HOLE);
  return hole < 0 || static_cast<std::uint64_t>(hole) >= end ? Content::data : Content::mixed;
}

bool ArenaView::is_hole(std::uint64_t offset, std::uint64_t bytes) const {
  return next_data(offset) >= offset + bytes;
}

// Only ENXIO means that there is no data up to the end of the file. After any other failure (a
// sandbox forbids lseek, or the file system has no SEEK_DATA), the range may hold data, which must
// not be mistaken for zeros.
std::uint64_t ArenaView::next_data(std::uint64_t offset) const {
  const off_t data = lseek(file_.get(), static_cast<off_t>(offset), SEEK_DATA);
  if (data >= 0) return static_cast<std::uint64_t>(data);
  return errno == ENXIO ? bytes_ : offset;
}

void ArenaView::forget(std::uint64_t offset, std::uint64_t bytes) noexcept {
  mark(offset, bytes, false);
}

}  // namespace hccl::device
