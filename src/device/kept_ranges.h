// SPDX-License-Identifier: Apache-2.0
// Which bytes of an arena a forked child keeps: a set of ranges. Pure bookkeeping.
#pragma once

#include <cstdint>
#include <map>

namespace hccl::device {

class KeptRanges {
 public:
  // May throw std::bad_alloc; then nothing has changed but that the ranges that [begin, end)
  // overlaps may be fewer.
  void add(std::uint64_t begin, std::uint64_t end);
  void remove(std::uint64_t begin, std::uint64_t end);

  [[nodiscard]] bool empty() const noexcept { return ranges_.empty(); }
  // Returns the number of bytes in all ranges.
  [[nodiscard]] std::uint64_t bytes() const noexcept;

  // Calls visit(begin, end), in order, for pieces of `unit` bytes and multiples of that which hold
  // all of it, each as long as possible. Allocates nothing.
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
  std::map<std::uint64_t, std::uint64_t> ranges_;  // begin -> end; they do not touch each other
};

}  // namespace hccl::device
