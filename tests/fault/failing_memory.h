// SPDX-License-Identifier: Apache-2.0
// Fails one allocation of this program, whichever thread makes it, as a process at its limit does.
#pragma once

namespace hccl::test {

// The allocation with this number (from 1) among those that are counted throws std::bad_alloc.
void fail_allocation(long number) noexcept;
// How many have been counted since.
[[nodiscard]] long counted_allocations() noexcept;

// While one lives, allocations are counted: of all threads of the process.
class CountAllocations {
 public:
  CountAllocations() noexcept;
  ~CountAllocations();
  CountAllocations(const CountAllocations&) = delete;
  CountAllocations& operator=(const CountAllocations&) = delete;
};

}  // namespace hccl::test
