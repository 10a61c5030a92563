// SPDX-License-Identifier: Apache-2.0
#include "device/allocation_map.h"

#include "device/address.h"

#include <iterator>

namespace hccl::device {
namespace {

constexpr std::uint64_t kLeadStep = std::uint64_t{6} * 64;  // six cache lines

}  // namespace

AllocationMap::AllocationMap(std::uint64_t capacity, std::uint32_t stagger)
    : addresses_(0, capacity), next_lead_(std::uint64_t{stagger} * 2 * kLeadStep) {}

AllocationMap::Entry* AllocationMap::allocate(std::uint64_t bytes) {
  // A tile reads and writes many buffers at the same offset. If all buffers started at the same
  // offset within a page, their cache lines would compete for the same few sets of the first-level
  // cache.
  std::uint64_t lead = next_lead_ % kPageBytes;
  next_lead_ += kLeadStep;
  std::uint64_t pages = round_up(lead + bytes, kPageBytes);
  auto offset = addresses_.allocate(pages, pages >= kHugePageBytes ? kHugePageBytes : kPageBytes);
  if (!offset) {  // retry without the lead and the large alignment
    lead = 0;
    pages = round_up(bytes, kPageBytes);
    offset = addresses_.allocate(pages, kPageBytes);
  }
  if (!offset) return nullptr;
  const auto [entry, is_new] = allocations_.emplace(
      *offset, Allocation{bytes, lead, pages, *offset, next_serial_++, true, nullptr, {}, {}});
  return &*entry;
}

AllocationMap::Entry* AllocationMap::find(std::uint64_t offset) {
  const auto next = allocations_.upper_bound(offset);
  if (next == allocations_.begin()) return nullptr;
  Entry& entry = *std::prev(next);
  return offset < entry.first + entry.second.bytes ? &entry : nullptr;
}

AllocationMap::Allocations::iterator AllocationMap::erase(Allocations::iterator entry,
                                                          bool reusable) {
  if (reusable) addresses_.release(entry->first, entry->second.bytes);
  return allocations_.erase(entry);
}

}  // namespace hccl::device
