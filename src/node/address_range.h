// SPDX-License-Identifier: Apache-2.0
// A range of memory that a call reads or writes. A call must not begin ahead of its turn if it
// reads a range that an unfinished earlier call writes, or writes to a range that such a call
// reads.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hccl::node {

struct AddressRange {
  std::uint64_t first = 0;
  std::uint64_t bytes = 0;

  [[nodiscard]] bool overlaps(const AddressRange& other) const {
    return first < other.first + other.bytes && other.first < first + bytes;
  }
};

// Returns `address`, an address in the program's host memory, as a pointer.
[[nodiscard]] inline std::byte* host_pointer(std::uint64_t address) {
  return reinterpret_cast<std::byte*>(address);
}

}  // namespace hccl::node
