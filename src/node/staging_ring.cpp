// SPDX-License-Identifier: Apache-2.0
#include "node/staging_ring.h"

#include "device/address.h"

#include <algorithm>

namespace hccl::node {

std::optional<std::uint64_t> StagingRing::allocate(std::uint64_t bytes) {
  const std::uint64_t needed = device::round_up(bytes, kAlignment);
  std::uint64_t begin = 0;
  std::uint64_t end = bytes_;  // of the free space at `begin`
  if (!blocks_.empty()) {
    const std::uint64_t oldest = blocks_.front().begin;
    begin = blocks_.back().end;
    if (begin <= oldest) {  // the blocks have wrapped around
      end = oldest;
    } else if (needed > bytes_ - begin) {
      begin = 0;
      end = oldest;
    }
  }
  if (needed > end - begin) return std::nullopt;
  blocks_.push_back({begin, begin + needed, false});
  return begin;
}

void StagingRing::free(std::uint64_t offset) {
  std::ranges::find_if(blocks_, [&](const Block& block) {
    return block.begin == offset;
  })->is_free = true;
  while (!blocks_.empty() && blocks_.front().is_free) blocks_.pop_front();
}

}  // namespace hccl::node
