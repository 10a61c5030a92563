// SPDX-License-Identifier: Apache-2.0
#include "base/secret_bytes.h"

#include <cstring>
#include <new>

#include <sys/mman.h>
#include <unistd.h>

namespace hccl {
namespace {

std::size_t whole_pages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

}  // namespace

void* allocate_secret_memory(std::size_t bytes) {
  const std::size_t size = whole_pages(bytes);
  void* const memory =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  madvise(memory, size, MADV_DONTDUMP);
  madvise(memory, size, MADV_WIPEONFORK);
  return memory;
}

void free_secret_memory(void* memory, std::size_t bytes) noexcept {
  explicit_bzero(memory, bytes);
  munmap(memory, whole_pages(bytes));
}

}  // namespace hccl
