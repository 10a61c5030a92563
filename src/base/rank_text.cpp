// SPDX-License-Identifier: Apache-2.0
// Writes three or more consecutive ranks as a range. Truncates a list after 32 runs of consecutive
// ranks.
#include "base/rank_text.h"

#include "base/text.h"

#include <cstddef>
#include <sstream>

namespace hccl {

std::string rank_list(const std::vector<int>& ranks) {
  constexpr int kMostRanges = 32;
  std::ostringstream out;
  out << (ranks.size() == 1 ? "rank " : "ranks ");
  int ranges = 0;
  for (std::size_t first = 0; first < ranks.size();) {
    std::size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (ranges > 0) out << ',';
    if (++ranges > kMostRanges) {
      out << "...";
      break;
    }
    out << ranks[first];
    if (last > first) out << (last == first + 1 ? ',' : '-') << ranks[last];
    first = last + 1;
  }
  return out.str();
}

std::string rank_text(int rank, int pid, const std::string& host) {
  return text("rank ", rank, " (pid ", pid, ", host ", host, ')');
}

}  // namespace hccl
