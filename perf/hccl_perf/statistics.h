// SPDX-License-Identifier: Apache-2.0
// Summarises times across ranks, across the iterations of a latency pass, and across timed passes.
#pragma once

#include <cstddef>
#include <vector>

namespace hccl_perf {

// Selects how the ranks' times are combined in the table (nccl-tests -a).
enum class Averaging { rank0 = 0, average = 1, minimum = 2, maximum = 3 };

// Returns "rank0", "avg", "min" or "max".
[[nodiscard]] const char* averaging_name(Averaging averaging);

// A measurement summarised over the ranks.
struct AcrossRanks {
  double rank0 = 0;
  double average = 0;
  double minimum = 0;
  double maximum = 0;
  int slowest_rank = 0;

  [[nodiscard]] double by(Averaging averaging) const;
};

[[nodiscard]] AcrossRanks across_ranks(const std::vector<double>& by_rank);

struct Percentiles {
  double minimum = 0;
  double mean = 0;
  double p50 = 0;
  double p95 = 0;
  double p99 = 0;
  double maximum = 0;
};

// Returns nearest-rank percentiles, each of which is one of the samples. Returns zeros if there are
// no samples.
[[nodiscard]] Percentiles percentiles(std::vector<double> samples);

// Returns the index of the median of `samples`, which must not be empty. If the number of samples
// is even, returns the index of the lower of the two middle samples.
[[nodiscard]] std::size_t median_position(const std::vector<double>& samples);

// Returns the median. If the number of samples is even, this is the mean of the two middle samples.
// Returns 0 if there are no samples.
[[nodiscard]] double median(std::vector<double> samples);

// Returns the median absolute deviation from the median, a measure of spread that a few outliers do
// not affect.
[[nodiscard]] double median_deviation(const std::vector<double>& samples);

}  // namespace hccl_perf
