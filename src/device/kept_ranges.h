// SPDX-License-Identifier: Apache-2.0
// A set of ranges in an arena, such as those that forked children keep. Does not access the memory
// of these ranges.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

namespace hccl::device {

class KeptRanges {
 public:
  // Adds a range. If add() throws std::bad_alloc, the set is unchanged.
  void add(std::uint64_t begin, std::uint64_t end);
  // Removes the parts of the ranges that lie in [begin, end). Returns the number of bytes removed.
  // If remove() throws std::bad_alloc, the set is unchanged.
  std::uint64_t remove(std::uint64_t begin, std::uint64_t end);

  [[nodiscard]] bool empty() const noexcept { return ranges_.empty(); }
  // Returns the begin and end of the range with the highest offsets. Do not call it for an empty
  // set.
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> last() const noexcept {
    return *ranges_.rbegin();
  }
  // Returns the number of bytes in all ranges.
  [[nodiscard]] std::uint64_t bytes() const noexcept;

  // Rounds the set outwards to multiples of `unit` bytes, and calls visit(begin, end) in order for
  // each contiguous range of the result. Allocates nothing.
  template <class Visit>
  void for_each_rounded(std::uint64_t unit, Visit visit) const {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    for (const auto& [first, past] : ranges_) {
      const std::uint64_t down = first / unit * unit;
      if (down > end) {
        if (end > begin) visit(begin, end);
        begin = down;
      }
      end = (past + unit - 1) / unit * unit;
    }
    if (end > begin) visit(begin, end);
  }

 private:
  std::map<std::uint64_t, std::uint64_t> ranges_;  // begin -> end; no two touch
};

}  // namespace hccl::device
