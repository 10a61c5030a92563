// SPDX-License-Identifier: Apache-2.0
// Fails one chosen allocation of this program, on any thread.
#pragma once

namespace hccl::test {

// Resets the count of allocations and makes allocation `number`, counted from 1, throw
// std::bad_alloc; 0 means none.
void fail_allocation(long number) noexcept;
// Returns the number of allocations counted since the last fail_allocation().
[[nodiscard]] long counted_allocations() noexcept;

// Counts the allocations of all threads of the process during its lifetime.
class CountAllocations {
 public:
  CountAllocations() noexcept;
  ~CountAllocations();
  CountAllocations(const CountAllocations&) = delete;
  CountAllocations& operator=(const CountAllocations&) = delete;
};

}  // namespace hccl::test
