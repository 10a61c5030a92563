// SPDX-License-Identifier: Apache-2.0
// Allocates by first fit, and joins adjacent free ranges.
#include "device/address_allocator.h"

namespace hccl::device {

std::optional<std::uint64_t> AddressAllocator::allocate(std::uint64_t bytes,
                                                        std::uint64_t alignment) {
  for (auto range = free_.begin(); range != free_.end(); ++range) {
    const auto [start, length] = *range;
    const std::uint64_t aligned = (start + alignment - 1) / alignment * alignment;
    if (aligned - start > length || length - (aligned - start) < bytes) continue;
    const std::uint64_t rest = length - (aligned - start) - bytes;
    if (aligned > start) {
      if (rest > 0) free_.emplace(aligned + bytes, rest);
      range->second = aligned - start;
    } else if (rest > 0) {
      move_range(range, aligned + bytes, rest);
    } else {
      free_.erase(range);
    }
    return aligned;
  }
  return std::nullopt;
}

void AddressAllocator::release(std::uint64_t offset, std::uint64_t bytes) {
  const auto next = free_.lower_bound(offset);
  const auto previous = next != free_.begin() ? std::prev(next) : free_.end();
  const bool joins_previous =
      previous != free_.end() && previous->first + previous->second == offset;
  const bool joins_next = next != free_.end() && offset + bytes == next->first;
  if (joins_previous) {
    previous->second += bytes + (joins_next ? next->second : 0);
    if (joins_next) free_.erase(next);
  } else if (joins_next) {
    move_range(next, offset, bytes + next->second);
  } else {
    free_.emplace(offset, bytes);
  }
}

// Reuses the map's node, so no memory is allocated.
void AddressAllocator::move_range(Ranges::iterator range, std::uint64_t offset,
                                  std::uint64_t bytes) {
  auto entry = free_.extract(range);
  if (entry.empty()) return;  // never true for a valid iterator, but the compiler cannot tell
  entry.key() = offset;
  entry.mapped() = bytes;
  free_.insert(std::move(entry));
}

}  // namespace hccl::device
