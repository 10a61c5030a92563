// SPDX-License-Identifier: Apache-2.0
// Times and numbers as text.
#include "results.h"

#include <array>
#include <charconv>
#include <ctime>

namespace hccl_perf {

std::string utc_time(std::chrono::system_clock::time_point time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> written{};
  const std::size_t length =
      std::strftime(written.data(), written.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {written.data(), length};
}

std::string decimal(double value, int digits) {
  std::array<char, 400> written{};  // the largest double has 309 digits before the point
  const auto [end, error] = std::to_chars(written.data(), written.data() + written.size(), value,
                                          std::chars_format::fixed, digits);
  return {written.data(), error == std::errc() ? end : written.data()};
}

}  // namespace hccl_perf
