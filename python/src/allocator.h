// SPDX-License-Identifier: Apache-2.0
// PyTorch's allocators over the pool of shared memory.
#pragma once

#include <cstddef>

#include <ATen/core/Tensor.h>

namespace hccl_torch {

// Returns a tensor in shared memory whose contents are undefined; in ordinary memory if there is no
// shared memory left.
[[nodiscard]] at::Tensor empty(at::IntArrayRef size, const at::TensorOptions& options);

// The same for memory of an operation, which a forked child does not need.
[[nodiscard]] at::Tensor empty_scratch(at::IntArrayRef size, at::ScalarType type);

// Puts all CPU tensors of this process that are made from now on and have at least `least_bytes`
// into shared memory. A second call changes the limit.
void install_allocator(std::size_t least_bytes);
[[nodiscard]] bool allocator_is_installed();

// While it lives, the CPU tensors that this thread makes lie in memory of `allocator`, which has
// static lifetime. Needs watch_allocations().
class AllocationGuard {
 public:
  explicit AllocationGuard(c10::Allocator* allocator) noexcept;
  ~AllocationGuard();
  AllocationGuard(const AllocationGuard&) = delete;
  AllocationGuard& operator=(const AllocationGuard&) = delete;

 private:
  c10::Allocator* const previous_;
};

// Makes PyTorch ask this module for the memory of CPU tensors, which stay where they were unless
// install_allocator() or a guard says otherwise. `release` takes back a block of a guard's
// allocator that is freed by its address alone, and returns whether it was one.
void watch_allocations(bool (*release)(void* memory));

}  // namespace hccl_torch
