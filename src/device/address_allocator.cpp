// SPDX-License-Identifier: Apache-2.0
// First fit with coalescing.
#include "device/address_allocator.h"

namespace hccl::device {

std::optional<std::uint64_t> AddressAllocator::allocate(std::uint64_t bytes,
                                                        std::uint64_t alignment) {
  for (auto range = free_.begin(); range != free_.end(); ++range) {
    const auto [start, length] = *range;
    const std::uint64_t aligned = (start + alignment - 1) / alignment * alignment;
    if (aligned - start > length || length - (aligned - start) < bytes) continue;
    free_.erase(range);
    if (aligned > start) free_.emplace(start, aligned - start);
    const std::uint64_t rest = length - (aligned - start) - bytes;
    if (rest > 0) free_.emplace(aligned + bytes, rest);
    return aligned;
  }
  return std::nullopt;
}

void AddressAllocator::release(std::uint64_t offset, std::uint64_t bytes) {
  auto next = free_.lower_bound(offset);
  if (next != free_.begin()) {
    auto previous = std::prev(next);
    if (previous->first + previous->second == offset) {
      offset = previous->first;
      bytes += previous->second;
      free_.erase(previous);
    }
  }
  if (next != free_.end() && offset + bytes == next->first) {
    bytes += next->second;
    free_.erase(next);
  }
  free_.emplace(offset, bytes);
}

}  // namespace hccl::device
