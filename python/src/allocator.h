// SPDX-License-Identifier: Apache-2.0
// Allocators for PyTorch that use the pool of shared memory.
#pragma once

#include <cstddef>

#include <ATen/core/Tensor.h>

namespace hccl_torch {

// Returns a tensor with undefined contents and the type in `options`. The tensor is in shared
// memory, or in ordinary memory if MemoryPool::allocate() returns null.
[[nodiscard]] at::Tensor empty(at::IntArrayRef size, const at::TensorOptions& options);

// Like empty(), but for an operation's temporary data: forked children get no copy of the memory.
[[nodiscard]] at::Tensor empty_scratch(at::IntArrayRef size, at::ScalarType type);

// Makes PyTorch allocate all later CPU tensors of at least `least_bytes` bytes in shared memory, or
// in ordinary memory if MemoryPool::allocate() returns null. A second call changes the minimum.
void install_allocator(std::size_t least_bytes);
[[nodiscard]] bool allocator_is_installed();

// While the object lives, the memory of CPU tensors that this thread creates comes from
// `allocator`, which must have static lifetime. Call watch_allocations() first.
class AllocationGuard {
 public:
  explicit AllocationGuard(c10::Allocator* allocator) noexcept;
  ~AllocationGuard();
  AllocationGuard(const AllocationGuard&) = delete;
  AllocationGuard& operator=(const AllocationGuard&) = delete;

 private:
  c10::Allocator* const previous_;
};

// Makes PyTorch allocate CPU tensors through this module. Without install_allocator() and outside
// guards, the memory still comes from PyTorch's default CPU allocator. To free a block in shared
// memory, the module first calls `release`. If a guard's allocator made the block, `release` must
// free the block and return true; otherwise it must return false.
void watch_allocations(bool (*release)(void* memory));

}  // namespace hccl_torch
