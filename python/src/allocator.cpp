// SPDX-License-Identifier: Apache-2.0
#include "allocator.h"

#include "memory_pool.h"

#include <atomic>
#include <cstdint>
#include <utility>

#include <ATen/EmptyTensor.h>
#include <c10/core/CPUAllocator.h>

namespace hccl_torch {

namespace {

thread_local c10::Allocator* redirected = nullptr;

bool (*release_redirected)(void* memory) = nullptr;

// Frees a block, whether it came from the pool, a guard's allocator or the default allocator.
void free_any(void* memory) {
  if (MemoryPool::instance().contains(memory)) {
    if (release_redirected != nullptr && release_redirected(memory)) return;
    if (MemoryPool::instance().release(memory)) return;
  }
  c10::GetDefaultCPUAllocator()->raw_deallocate(memory);
}

class SharedAllocator final : public c10::Allocator {
 public:
  explicit SharedAllocator(std::size_t least_bytes, bool is_kept = true)
      : least_bytes_(least_bytes), is_kept_(is_kept) {}

  c10::DataPtr allocate(std::size_t bytes) override {
    if (redirected != nullptr) return redirected->allocate(bytes);
    void* memory = nullptr;
    if (bytes >= least_bytes_.load(std::memory_order_relaxed) && bytes > 0)
      memory = MemoryPool::instance().allocate(bytes, is_kept_);
    if (memory == nullptr) memory = c10::GetDefaultCPUAllocator()->raw_allocate(bytes);
    return {memory, memory, free_any, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return free_any; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
  [[nodiscard]] std::size_t least_bytes() const {
    return least_bytes_.load(std::memory_order_relaxed);
  }
  void set_least_bytes(std::size_t bytes) { least_bytes_.store(bytes, std::memory_order_relaxed); }

 private:
  std::atomic<std::size_t> least_bytes_;
  const bool is_kept_;
};

// Returns the allocator, which is never destroyed because static destructors free tensors.
SharedAllocator& installed() {
  static auto* const allocator = new SharedAllocator(SIZE_MAX);
  return *allocator;
}

at::Tensor make_tensor(SharedAllocator& allocator, at::IntArrayRef size, at::ScalarType type) {
  return at::detail::empty_generic(size, &allocator, c10::DispatchKeySet(c10::DispatchKey::CPU),
                                   type, std::nullopt);
}

constexpr std::uint8_t kPriority = 100;  // above the default allocator's, which is 0

}  // namespace

at::Tensor empty(at::IntArrayRef size, const at::TensorOptions& options) {
  static auto* const allocator = new SharedAllocator(1);
  return make_tensor(*allocator, size, c10::typeMetaToScalarType(options.dtype()));
}

at::Tensor empty_scratch(at::IntArrayRef size, at::ScalarType type) {
  static auto* const allocator = new SharedAllocator(1, false);
  return make_tensor(*allocator, size, type);
}

void install_allocator(std::size_t least_bytes) {
  installed().set_least_bytes(least_bytes);
  c10::SetCPUAllocator(&installed(), kPriority);
}

bool allocator_is_installed() {
  return c10::GetCPUAllocator() == &installed() && installed().least_bytes() != SIZE_MAX;
}

AllocationGuard::AllocationGuard(c10::Allocator* allocator) noexcept
    : previous_(std::exchange(redirected, allocator)) {}

AllocationGuard::~AllocationGuard() { redirected = previous_; }

void watch_allocations(bool (*release)(void* memory)) {
  release_redirected = release;
  c10::SetCPUAllocator(&installed(), kPriority);
}

}  // namespace hccl_torch
