// SPDX-License-Identifier: Apache-2.0
// Joins adjacent ranges.
#include "device/kept_ranges.h"

#include <algorithm>
#include <iterator>

namespace hccl::device {

void KeptRanges::add(std::uint64_t begin, std::uint64_t end) {
  if (begin >= end) return;
  const auto above = ranges_.upper_bound(begin);
  if (above != ranges_.begin() && std::prev(above)->second >= begin)
    begin = std::prev(above)->first;
  const auto kept = ranges_.try_emplace(begin, end).first;
  kept->second = std::max(kept->second, end);
  auto next = std::next(kept);
  while (next != ranges_.end() && next->first <= kept->second) {
    kept->second = std::max(kept->second, next->second);
    next = ranges_.erase(next);
  }
}

std::uint64_t KeptRanges::remove(std::uint64_t begin, std::uint64_t end) {
  if (begin >= end) return 0;
  // First, because it may throw: splits the range that extends beyond `end`.
  const auto above = ranges_.lower_bound(end);
  if (above != ranges_.begin()) {
    const auto last = std::prev(above);
    if (last->second > end) {
      ranges_.emplace_hint(above, end, last->second);
      last->second = end;
    }
  }
  std::uint64_t removed = 0;
  auto range = ranges_.upper_bound(begin);
  if (range != ranges_.begin()) --range;
  while (range != ranges_.end() && range->first < end) {
    const auto [first, past] = *range;
    if (past <= begin) {
      ++range;
      continue;
    }
    removed += past - std::max(first, begin);
    if (first < begin) {
      range->second = begin;
      ++range;
    } else {
      range = ranges_.erase(range);
    }
  }
  return removed;
}

std::uint64_t KeptRanges::bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& [begin, end] : ranges_) sum += end - begin;
  return sum;
}

}  // namespace hccl::device
