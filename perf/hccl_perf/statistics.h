// SPDX-License-Identifier: Apache-2.0
// Summaries of times: across ranks, and across the iterations of a latency pass.
#pragma once

#include <cstddef>
#include <vector>

namespace hccl_perf {

// How per-rank times become the one in the table (nccl-tests -a).
enum class Averaging { rank0 = 0, average = 1, minimum = 2, maximum = 3 };

// "rank0", "avg", "min" or "max".
[[nodiscard]] const char* averaging_name(Averaging averaging);

// The ranks' measurements of the same thing.
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

// Nearest-rank percentiles: each is a value that was measured. Zeros for no samples.
[[nodiscard]] Percentiles percentiles(std::vector<double> samples);

// Where the median of one or more `samples` is; of an even number of them, the lower one.
[[nodiscard]] std::size_t median_position(const std::vector<double>& samples);

// Zero for no samples; between the two in the middle of an even number of them.
[[nodiscard]] double median(std::vector<double> samples);

// Median absolute deviation from the median: a spread that a few outliers do not change.
[[nodiscard]] double median_deviation(const std::vector<double>& samples);

}  // namespace hccl_perf
