// SPDX-License-Identifier: Apache-2.0
// The measurement shared by the programs of the comparison over RoCE (roce.py).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <numeric>
#include <vector>

namespace peers {

// Times `calls` calls after a warm-up. Rank 0 prints the microseconds per call: the median and the
// mean.
template <class Call>
void time_calls(int rank, std::size_t calls, const Call& call) {
  using Clock = std::chrono::steady_clock;
  for (std::size_t i = 0; i < calls / 10 + 2; ++i) call();
  std::vector<double> microseconds(calls);
  for (double& sample : microseconds) {
    const auto begin = Clock::now();
    call();
    sample = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
  }
  std::ranges::sort(microseconds);
  const double sum = std::accumulate(microseconds.begin(), microseconds.end(), 0.0);
  if (rank == 0)
    std::printf("%.3f %.3f\n", microseconds[calls / 2], sum / static_cast<double>(calls));
}

}  // namespace peers
