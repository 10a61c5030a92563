// SPDX-License-Identifier: Apache-2.0
// Allocates ranges of offsets by first fit. Does not access the memory at these offsets.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace hccl::device {

class AddressAllocator {
 public:
  AddressAllocator(std::uint64_t first, std::uint64_t end) { free_.emplace(first, end - first); }

  // Allocates the lowest free range of `bytes` bytes whose offset is a multiple of `alignment`.
  // Returns the offset, or nothing if there is no such range. If allocate() or release() throws
  // std::bad_alloc, the free ranges are unchanged.
  [[nodiscard]] std::optional<std::uint64_t> allocate(std::uint64_t bytes, std::uint64_t alignment);
  void release(std::uint64_t offset, std::uint64_t bytes);

 private:
  using Ranges = std::map<std::uint64_t, std::uint64_t>;  // offset -> bytes

  void move_range(Ranges::iterator range, std::uint64_t offset, std::uint64_t bytes);

  Ranges free_;  // no two are adjacent
};

}  // namespace hccl::device
