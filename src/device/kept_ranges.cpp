// SPDX-License-Identifier: Apache-2.0
// Joins ranges that touch.
#include "device/kept_ranges.h"

#include <algorithm>
#include <iterator>

namespace hccl::device {

void KeptRanges::add(std::uint64_t begin, std::uint64_t end) {
  if (begin >= end) return;
  auto next = ranges_.upper_bound(begin);
  if (next != ranges_.begin() && std::prev(next)->second >= begin) {
    --next;
    begin = next->first;
  }
  while (next != ranges_.end() && next->first <= end) {
    end = std::max(end, next->second);
    if (next->first == begin) {
      ++next;
    } else {
      next = ranges_.erase(next);
    }
  }
  ranges_[begin] = end;
}

void KeptRanges::remove(std::uint64_t begin, std::uint64_t end) {
  if (begin >= end) return;
  auto range = ranges_.upper_bound(begin);
  if (range != ranges_.begin()) --range;
  while (range != ranges_.end() && range->first < end) {
    const auto [first, past] = *range;
    if (past <= begin) {
      ++range;
      continue;
    }
    if (past > end) ranges_.emplace(end, past);  // first, because it may throw
    if (first < begin) {
      range->second = begin;
      ++range;
    } else {
      range = ranges_.erase(range);
    }
  }
}

std::uint64_t KeptRanges::bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& [begin, end] : ranges_) sum += end - begin;
  return sum;
}

}  // namespace hccl::device
