// SPDX-License-Identifier: Apache-2.0
// Memory for secrets. It is wiped when it is freed. If the kernel is Linux 4.14 or later, it is not
// written to core dumps, and is empty in forked children.
#pragma once

#include <cstddef>
#include <vector>

namespace hccl {

// Returns whole pages, because the kernel excludes only whole pages from core dumps. Throws
// std::bad_alloc.
[[nodiscard]] void* allocate_secret_memory(std::size_t bytes);
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
