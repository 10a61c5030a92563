// SPDX-License-Identifier: Apache-2.0
// An allocator that wipes memory before it frees it.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>

namespace hccl {

// Unlike SecretAllocator, it takes memory from the heap, which core dumps contain: use it for
// memory that holds a secret only for a short time.
template <class Value>
struct WipingAllocator {
  // NOLINTNEXTLINE(readability-identifier-naming): the standard requires this name
  using value_type = Value;

  WipingAllocator() = default;
  template <class Other>
  explicit WipingAllocator(const WipingAllocator<Other>& /*other*/) noexcept {}

  [[nodiscard]] Value* allocate(std::size_t count) {
    return std::allocator<Value>().allocate(count);
  }
  void deallocate(Value* memory, std::size_t count) noexcept {
    explicit_bzero(memory, count * sizeof(Value));
    std::allocator<Value>().deallocate(memory, count);
  }
  friend bool operator==(const WipingAllocator&, const WipingAllocator&) = default;
};

}  // namespace hccl
