// SPDX-License-Identifier: Apache-2.0
// The allocations of an arena and the free ranges between them, by offset. Does not access the
// arena's memory.
#pragma once

#include "device/address_allocator.h"
#include "device/host_view.h"

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

namespace hccl::device {

struct Allocation {
  std::uint64_t requested = 0;    // bytes the program asked for
  std::uint64_t lead = 0;         // bytes from the start of the first page to the address
  std::uint64_t bytes = 0;        // of all its pages
  std::uint64_t file_offset = 0;  // of the first page
  std::uint32_t serial = 0;       // identifies the pages; changes when they are replaced
  bool live = true;
  std::function<bool()> quiescent;         // returns true when no work can access the memory
  std::vector<std::uint64_t> left_behind;  // file offsets of replaced pages
  HostView view;                           // valid if the program requested one
};

// Not thread-safe.
class AllocationMap {
 public:
  using Allocations = std::map<std::uint64_t, Allocation>;  // keyed by the offset of the first page
  using Entry = Allocations::value_type;

  // The devices on a node pass different `stagger` values, so that their buffers do not all start
  // in the same cache set.
  AllocationMap(std::uint64_t capacity, std::uint32_t stagger);

  // Returns a new allocation, or null if no free range is large enough.
  [[nodiscard]] Entry* allocate(std::uint64_t bytes);
  // Returns the allocation whose pages contain `offset`, or null.
  [[nodiscard]] Entry* find(std::uint64_t offset);
  // Gives the allocation a new serial number, because its pages have been replaced.
  void renumber(Allocation& allocation) { allocation.serial = next_serial_++; }
  // Removes an allocation and returns the next one. If `reusable`, makes the removed range of
  // offsets available again.
  Allocations::iterator erase(Allocations::iterator entry, bool reusable);

  [[nodiscard]] Allocations::iterator begin() { return allocations_.begin(); }
  [[nodiscard]] Allocations::iterator end() { return allocations_.end(); }

 private:
  Allocations allocations_;
  AddressAllocator addresses_;
  std::uint32_t next_serial_ = 1;
  std::uint64_t next_lead_;
};

}  // namespace hccl::device
