// SPDX-License-Identifier: Apache-2.0
// Runs of ranks are written as ranges; long lists are cut, for the first names suffice to act.
#include "bootstrap/rank_list.h"

#include <cstddef>
#include <sstream>

namespace hccl::bootstrap {

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

}  // namespace hccl::bootstrap
