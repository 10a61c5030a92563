// SPDX-License-Identifier: Apache-2.0
#include "node/staging_ring.h"

#include <algorithm>

namespace hccl::node {

std::optional<std::uint64_t> StagingRing::reserve(std::uint64_t bytes) {
  const std::uint64_t needed = size_of(bytes);
  std::uint64_t begin = end_;
  std::uint64_t end = bytes_;  // of the free space at `begin`
  if (reservations_.empty()) {
    if (reuse_ == Reuse::early || needed > bytes_ - begin) begin = 0;
  } else {
    const std::uint64_t oldest = reservations_.front().begin;
    if (begin <= oldest) {  // the reservations have wrapped around
      end = oldest;
    } else if (needed > bytes_ - begin) {
      begin = 0;
      end = oldest;
    }
  }
  if (needed > end - begin) return std::nullopt;
  end_ = begin + needed;
  reservations_.push_back({begin, end_, false});
  return begin;
}

void StagingRing::free(std::uint64_t offset) {
  std::ranges::find_if(reservations_, [&](const Reservation& reservation) {
    return reservation.begin == offset;
  })->is_free = true;
  while (!reservations_.empty() && reservations_.front().is_free) reservations_.pop_front();
}

}  // namespace hccl::node
