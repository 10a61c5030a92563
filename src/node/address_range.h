// SPDX-License-Identifier: Apache-2.0
// Ranges of device memory that calls read and write, for those that begin ahead of their turn.
#pragma once

#include <cstdint>

namespace hccl::node {

struct AddressRange {
  std::uint64_t first = 0;
  std::uint64_t bytes = 0;

  [[nodiscard]] bool overlaps(const AddressRange& other) const {
    return first < other.first + other.bytes && other.first < first + bytes;
  }
};

}  // namespace hccl::node
