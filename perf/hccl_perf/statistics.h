// SPDX-License-Identifier: Apache-2.0
// Summaries of times: across ranks, and across the iterations of a latency pass.
#pragma once

#include <vector>

namespace hccl_perf {

// How per-rank times become the one in the table (nccl-tests -a).
enum class Averaging { rank0 = 0, average = 1, minimum = 2, maximum = 3 };

// What the ranks measured for the same thing.
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

}  // namespace hccl_perf
