// SPDX-License-Identifier: Apache-2.0
// Reserves address space. This costs no memory: nothing is accessible until a view is mapped there.
#include "device/view_space.h"

#include "base/file_descriptor.h"
#include "base/log.h"
#include "base/retry.h"
#include "base/text.h"

#include <array>
#include <cerrno>
#include <charconv>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

namespace hccl::device {
namespace {

// Returns the total length of this process's mappings, or nothing if /proc is not readable.
std::optional<std::uint64_t> mapped_bytes() noexcept {
  const FileDescriptor file(open("/proc/self/statm", O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return std::nullopt;
  std::array<char, 128> text{};
  const ssize_t length = retried([&] { return read(file.get(), text.data(), text.size()); });
  std::uint64_t pages = 0;
  if (length <= 0 || std::from_chars(text.data(), text.data() + length, pages).ec != std::errc())
    return std::nullopt;
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

// Returns whether a reservation of `bytes` leaves at least another `bytes` of the address space
// that RLIMIT_AS allows, for the program and the library's other mappings. Returns false if there
// is a limit and /proc is not readable.
bool leaves_room(std::uint64_t bytes) noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return true;
  const std::optional<std::uint64_t> used = mapped_bytes();
  return used && *used < limit.rlim_cur && (limit.rlim_cur - *used) / 2 >= bytes;
}

}  // namespace

ViewSpace::~ViewSpace() {
  const std::uint64_t base = base_.load(std::memory_order_relaxed);
  if (base != kNowhere) munmap(reinterpret_cast<void*>(base), bytes_);
}

std::byte* ViewSpace::address_at(std::uint64_t offset) noexcept {
  std::uint64_t base = base_.load(std::memory_order_relaxed);
  if (base == kNowhere) {
    if (refused()) return nullptr;
    // The range begins at the boundary of a huge page, as the arena does.
    const std::uint64_t length = bytes_ + kHugePageBytes;
    void* mapped = MAP_FAILED;
    errno = ENOMEM;
    if (leaves_room(length))
      mapped = mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) {
      refused_.store(true, std::memory_order_relaxed);
      log(LogLevel::info, "device", "cannot reserve ", bytes_,
          " bytes of address space: ", system_error_text(errno),
          "; calls treat host views of device memory like any other host memory; raise ulimit -v "
          "so that ",
          2 * length, " bytes of address space are free");
      return nullptr;
    }
    const auto start = reinterpret_cast<std::uint64_t>(mapped);
    base = round_up(start, kHugePageBytes);
    if (base > start) munmap(mapped, base - start);
    if (start + length > base + bytes_)
      munmap(reinterpret_cast<void*>(base + bytes_), start + length - base - bytes_);
    madvise(reinterpret_cast<void*>(base), bytes_, MADV_DONTDUMP);
    madvise(reinterpret_cast<void*>(base), bytes_, MADV_DONTFORK);
    base_.store(base, std::memory_order_relaxed);
  }
  return reinterpret_cast<std::byte*>(base + offset);
}

}  // namespace hccl::device
