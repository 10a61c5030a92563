// SPDX-License-Identifier: Apache-2.0
// Counts the rows of a cycle, and formats a point in time.
#include "results.h"

#include <algorithm>
#include <array>
#include <ctime>

namespace hccl_perf {

std::size_t Results::rows_of_cycle() const {
  return std::max<std::size_t>(options.cases(static_cast<int>(ranks.size())).size(), 1);
}

std::string utc_time(std::chrono::system_clock::time_point time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> written{};
  const std::size_t length =
      std::strftime(written.data(), written.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {written.data(), length};
}

}  // namespace hccl_perf
