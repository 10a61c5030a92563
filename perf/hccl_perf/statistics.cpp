// SPDX-License-Identifier: Apache-2.0
// Summarises times.
#include "statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace hccl_perf {
namespace {

// Returns the smallest sample such that at least `percent` percent of the samples do not exceed it.
double nearest_rank(const std::vector<double>& sorted, double percent) {
  const double position = std::ceil(percent / 100.0 * static_cast<double>(sorted.size()));
  return sorted[static_cast<std::size_t>(std::max(position, 1.0)) - 1];
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

const char* averaging_name(Averaging averaging) {
  constexpr const char* kNames[] = {"rank0", "avg", "min", "max"};
  return kNames[static_cast<int>(averaging)];
}

double AcrossRanks::by(Averaging averaging) const {
  const std::array values{rank0, average, minimum, maximum};
  return values.at(static_cast<std::size_t>(averaging));
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

std::size_t median_position(const std::vector<double>& samples) {
  std::vector<std::size_t> order(samples.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>((samples.size() - 1) / 2);
  std::nth_element(order.begin(), middle, order.end(), [&](std::size_t one, std::size_t other) {
    return samples[one] < samples[other];
  });
  return *middle;
}

double median(std::vector<double> samples) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  const std::size_t half = samples.size() / 2;
  return samples.size() % 2 == 1 ? samples[half] : (samples[half - 1] + samples[half]) / 2;
}

double median_deviation(const std::vector<double>& samples) {
  const double middle = median(samples);
  std::vector<double> deviations;
  deviations.reserve(samples.size());
  for (const double sample : samples) deviations.push_back(std::abs(sample - middle));
  return median(deviations);
}

}  // namespace hccl_perf
