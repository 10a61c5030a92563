// SPDX-License-Identifier: Apache-2.0
// Replaces operator new and operator delete for the whole program.
#include "failing_memory.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace hccl::test {
namespace {

constinit std::atomic<bool> counts{false};
constinit std::atomic<long> counted{0};
constinit std::atomic<long> failing{0};

[[nodiscard]] bool fails() noexcept {
  return counts.load(std::memory_order_relaxed) &&
         counted.fetch_add(1, std::memory_order_relaxed) + 1 ==
             failing.load(std::memory_order_relaxed);
}

[[nodiscard]] void* allocate(std::size_t size) noexcept {
  // NOLINTNEXTLINE(cppcoreguidelines-no-malloc): this is operator new
  return fails() ? nullptr : std::malloc(size == 0 ? 1 : size);
}

[[nodiscard]] void* allocate(std::size_t size, std::align_val_t alignment) noexcept {
  const auto unit = static_cast<std::size_t>(alignment);
  return fails() ? nullptr : std::aligned_alloc(unit, (size + unit - 1) / unit * unit);
}

[[nodiscard]] void* or_throw(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void fail_allocation(long number) noexcept {
  counted = 0;
  failing = number;
}
long counted_allocations() noexcept { return counted; }

CountAllocations::CountAllocations() noexcept { counts = true; }
CountAllocations::~CountAllocations() { counts = false; }

}  // namespace hccl::test

using hccl::test::allocate;
using hccl::test::or_throw;

// NOLINTBEGIN(cppcoreguidelines-no-malloc)
void* operator new(std::size_t size) { return or_throw(allocate(size)); }
void* operator new[](std::size_t size) { return or_throw(allocate(size)); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return or_throw(allocate(size, alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return or_throw(allocate(size, alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
// NOLINTEND(cppcoreguidelines-no-malloc)
