// SPDX-License-Identifier: Apache-2.0
// Summaries of times.
#include "statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hccl_perf {
namespace {

// The smallest sample that at least `percent` of the samples do not exceed.
double nearest_rank(const std::vector<double>& sorted, double percent) {
  const double position = std::ceil(percent / 100.0 * static_cast<double>(sorted.size()));
  return sorted[static_cast<std::size_t>(std::max(position, 1.0)) - 1];
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

double AcrossRanks::by(Averaging averaging) const {
  switch (averaging) {
    case Averaging::rank0:
      return rank0;
    case Averaging::minimum:
      return minimum;
    case Averaging::maximum:
      return maximum;
    case Averaging::average:
      break;
  }
  return average;
}

AcrossRanks across_ranks(const std::vector<double>& by_rank) {
  if (by_rank.empty()) return {};
  const auto [least, most] = std::minmax_element(by_rank.begin(), by_rank.end());
  return {by_rank.front(), mean(by_rank), *least, *most, static_cast<int>(most - by_rank.begin())};
}

Percentiles percentiles(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  return {samples.front(),           mean(samples),
          nearest_rank(samples, 50), nearest_rank(samples, 95),
          nearest_rank(samples, 99), samples.back()};
}

}  // namespace hccl_perf
