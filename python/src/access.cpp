// SPDX-License-Identifier: Apache-2.0
#include "access.h"

#include "memory_pool.h"
#include "memory_range.h"

#include <cerrno>
#include <cstdint>

#include <c10/util/Exception.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

namespace hccl_torch {

namespace {

std::uintptr_t page_bytes() {
  static const auto bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

// Returns whether a page can be used in this way.
bool can_use_page(std::uintptr_t page, int advice) {
  int result = 0;
  do {
    result = ::madvise(reinterpret_cast<void*>(page), page_bytes(), advice);
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

// Returns whether all pages of this memory are mapped, and the first and the last can be used in
// this way. To try each of them would take as long as the copy.
bool can_use(const std::byte* begin, const std::byte* end, int advice) {
  const auto page_of = [](const std::byte* place) {
    return reinterpret_cast<std::uintptr_t>(place) / page_bytes() * page_bytes();
  };
  const std::uintptr_t first = page_of(begin);
  const std::uintptr_t last = page_of(end - 1);
  // MS_ASYNC fails if a page is not mapped, and has no other effect.
  return ::msync(reinterpret_cast<void*>(first), last + page_bytes() - first, MS_ASYNC) == 0 &&
         can_use_page(first, advice) && (last == first || can_use_page(last, advice));
}

// Returns whether the kernel can tell at all, by asking for a variable.
bool can_tell() {
  static const bool can = [] {
    const std::byte one{};
    return can_use(&one, &one + 1, MADV_POPULATE_READ);
  }();
  return can;
}

bool is_usable(const at::Tensor& tensor, int advice) {
  if (!tensor.is_cpu() || !tensor.has_storage() || tensor.numel() == 0) return true;
  if (MemoryPool::instance().contains(tensor.const_data_ptr()) || !can_tell()) return true;
  const MemoryRange range = memory_of(tensor);
  return can_use(range.begin, range.end, advice);
}

}  // namespace

void require_readable(const at::Tensor& tensor, const char* call) {
  TORCH_CHECK_VALUE(is_usable(tensor, MADV_POPULATE_READ), "hccl_torch: ", call, " of ",
                    tensor.nbytes(), " bytes from memory that this process cannot read at ",
                    tensor.const_data_ptr(), "; pass a tensor whose memory is mapped");
}

void require_writable(const at::Tensor& tensor, const char* call) {
  TORCH_CHECK_VALUE(is_usable(tensor, MADV_POPULATE_WRITE), "hccl_torch: ", call, " of ",
                    tensor.nbytes(), " bytes into memory that this process cannot write to at ",
                    tensor.const_data_ptr(), "; pass a tensor that is not read-only");
}

}  // namespace hccl_torch
