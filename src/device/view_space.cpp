// SPDX-License-Identifier: Apache-2.0
// Reserving address space costs no memory: nothing is accessible until a view is mapped there.
#include "device/view_space.h"

#include "base/log.h"
#include "base/text.h"

#include <cerrno>

#include <sys/mman.h>

namespace hccl::device {

ViewSpace::~ViewSpace() {
  const std::uint64_t base = base_.load(std::memory_order_relaxed);
  if (base != kNowhere) munmap(reinterpret_cast<void*>(base), bytes_);
}

std::byte* ViewSpace::place(std::uint64_t offset) noexcept {
  std::uint64_t base = base_.load(std::memory_order_relaxed);
  if (base == kNowhere) {
    if (refused_) return nullptr;
    // Begins where a huge page may begin, as the arena does.
    const std::uint64_t length = bytes_ + kHugePageBytes;
    void* const mapped =
        mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) {
      refused_ = true;
      log(LogLevel::info, "device", "cannot reserve ", bytes_,
          " bytes of address space: ", system_error_text(errno),
          "; buffers that are host views are treated as host memory");
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
