// SPDX-License-Identifier: Apache-2.0
// Maps the pages of one allocation for the program, and unmaps them.
#include "device/host_view.h"

#include "base/errno_advice.h"
#include "base/error.h"
#include "base/text.h"

#include <cerrno>
#include <utility>

#include <sys/mman.h>

namespace hccl::device {

HostView::HostView(const FileDescriptor& file, std::uint64_t offset, std::uint64_t bytes,
                   std::byte* place)
    : bytes_(bytes), reserved_(place != nullptr) {
  map(place, file, offset);
}

HostView::~HostView() {
  if (base_ == nullptr) return;
  if (!reserved_) {
    munmap(base_, bytes_);
    return;
  }
  // Replaces the mapping atomically: if the range were free even for a moment, another thread's
  // mapping could end up in it. If the system refuses, the view stays mapped but unused.
  void* const reserved = mmap(base_, bytes_, PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (reserved == MAP_FAILED) return;
  madvise(reserved, bytes_, MADV_DONTDUMP);
  madvise(reserved, bytes_, MADV_DONTFORK);
}

HostView::HostView(HostView&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      bytes_(other.bytes_),
      reserved_(other.reserved_) {}

HostView& HostView::operator=(HostView&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(bytes_, other.bytes_);
  std::swap(reserved_, other.reserved_);
  return *this;
}

void HostView::move_to(const FileDescriptor& file, std::uint64_t offset) {
  if (base_ != nullptr) map(base_, file, offset);
}

void HostView::map(void* at, const FileDescriptor& file, std::uint64_t offset) {
  const int placement = at == nullptr ? 0 : MAP_FIXED;
  void* const mapped =
      mmap(at, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | placement, file.get(),
           static_cast<off_t>(offset));
  if (mapped == MAP_FAILED) {
    throw Error(hcclOutOfMemory,
                text("cannot map ", bytes_, " bytes of device memory for the program: ",
                     system_error_text(errno), "; ", advice_on_mapping(errno)));
  }
  madvise(mapped, bytes_, MADV_DONTDUMP);  // a core dump would touch every hole
  madvise(mapped, bytes_, MADV_DONTFORK);
  madvise(mapped, bytes_, MADV_HUGEPAGE);  // effective only if shared memory may use huge pages
  base_ = static_cast<std::byte*>(mapped);
}

}  // namespace hccl::device
