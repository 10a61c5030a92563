// SPDX-License-Identifier: Apache-2.0
// PyTorch's allocators over the pool of shared memory.
#pragma once

#include <cstddef>

#include <ATen/core/Tensor.h>

namespace hccl_torch {

// Returns a tensor with undefined contents in shared memory, or in ordinary memory if no shared
// memory is left.
[[nodiscard]] at::Tensor empty(at::IntArrayRef size, const at::TensorOptions& options);

// Returns the same for the temporary memory of an operation, which forked children do not keep.
[[nodiscard]] at::Tensor empty_scratch(at::IntArrayRef size, at::ScalarType type);

// Allocates all later CPU tensors of this process with at least `least_bytes` in shared memory. A
// second call changes the limit.
void install_allocator(std::size_t least_bytes);
[[nodiscard]] bool allocator_is_installed();

// While the object lives, CPU tensors that this thread creates are in memory of `allocator`, which
// must have static lifetime. Call watch_allocations() first.
class AllocationGuard {
 public:
  explicit AllocationGuard(c10::Allocator* allocator) noexcept;
  ~AllocationGuard();
  AllocationGuard(const AllocationGuard&) = delete;
  AllocationGuard& operator=(const AllocationGuard&) = delete;

 private:
  c10::Allocator* const previous_;
};

// Makes PyTorch allocate CPU tensors through this module. The module uses PyTorch's previous
// allocator unless install_allocator() or a guard is in effect. `release` is called for a block of
// which only the address is known; if the block belongs to a guard's allocator, `release` frees it
// and returns true.
void watch_allocations(bool (*release)(void* memory));

}  // namespace hccl_torch
