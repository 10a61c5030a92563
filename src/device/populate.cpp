// SPDX-License-Identifier: Apache-2.0
// Uses madvise(MADV_POPULATE_*), available since Linux 5.14.
#include "device/populate.h"

#include <cerrno>

#include <sys/mman.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

namespace hccl::device {

bool populate_pages(void* begin, std::uint64_t bytes, bool write) noexcept {
  int result = 0;
  do {
    result = madvise(begin, bytes, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

}  // namespace hccl::device
