// SPDX-License-Identifier: Apache-2.0
// Makes one chosen allocation of the program fail, on any thread.
#pragma once

namespace hccl::test {

// Resets the count of allocations. From now on, the `number`-th counted allocation fails, or none
// if `number` is 0.
void fail_allocation(long number) noexcept;
// Returns the number of allocations counted since the last fail_allocation().
[[nodiscard]] long counted_allocations() noexcept;

// The allocations of all threads are counted while an object of this class exists.
class CountAllocations {
 public:
  CountAllocations() noexcept;
  ~CountAllocations();
  CountAllocations(const CountAllocations&) = delete;
  CountAllocations& operator=(const CountAllocations&) = delete;
};

}  // namespace hccl::test
