// SPDX-License-Identifier: Apache-2.0
// Memory for secrets. It is wiped when it is freed, and is not written to core dumps. On Linux 4.14
// or later, a forked child sees zeros instead of its contents.
#pragma once

#include <cstddef>
#include <vector>

namespace hccl {

// Allocates `bytes` bytes of such memory, in pages of its own, because the kernel excludes only
// whole pages from core dumps. Throws std::bad_alloc. Returns zeroed memory, which the caller frees
// with free_secret_memory().
[[nodiscard]] void* allocate_secret_memory(std::size_t bytes);
// Wipes and frees memory of allocate_secret_memory(), with the same number of bytes.
void free_secret_memory(void* memory, std::size_t bytes) noexcept;

template <class Value>
struct SecretAllocator {
  // NOLINTNEXTLINE(readability-identifier-naming): the standard requires this name
  using value_type = Value;

  SecretAllocator() = default;
  template <class Other>
  explicit SecretAllocator(const SecretAllocator<Other>& /*other*/) noexcept {}

  [[nodiscard]] Value* allocate(std::size_t count) {
    return static_cast<Value*>(allocate_secret_memory(count * sizeof(Value)));
  }
  void deallocate(Value* memory, std::size_t count) noexcept {
    free_secret_memory(memory, count * sizeof(Value));
  }
  friend bool operator==(const SecretAllocator&, const SecretAllocator&) = default;
};

using SecretBytes = std::vector<std::byte, SecretAllocator<std::byte>>;

}  // namespace hccl
