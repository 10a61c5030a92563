// SPDX-License-Identifier: Apache-2.0
// Times communication, computation, and both together.
#include "overlap.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace hccl_perf {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kStepsOfUnit = 32;  // about 50 ns

}  // namespace

double overlap_percent(double communication, double computation, double overall) {
  if (communication <= 0) return 0;
  return std::clamp(100 * (1 - (overall - computation) / communication), 0.0, 100.0);
}

void compute(std::uint64_t units) {
  static volatile double unknown = 0.5;  // prevents constant folding
  double value = unknown;
  for (std::uint64_t unit = 0; unit < units; ++unit) {
    for (int step = 0; step < kStepsOfUnit; ++step) value = value * 0.999999 + 0.000001;
  }
  volatile double kept = value;
  static_cast<void>(kept);
}

double OverlapMeasurement::time_iterations(const Call* call, std::uint64_t units,
                                           std::uint64_t iterations) {
  exchange_.barrier();
  const Clock::time_point start = Clock::now();
  for (std::uint64_t i = 0; i < iterations; ++i) {
    if (call != nullptr) session_.enqueue(*call);
    compute(units);
    if (call != nullptr) session_.synchronize();
  }
  const double nanoseconds = std::chrono::duration<double, std::nano>(Clock::now() - start).count();
  const double each = nanoseconds / static_cast<double>(iterations);
  return across_ranks(exchange_.gather(each)).by(averaging_);
}

std::uint64_t OverlapMeasurement::units_for(double nanoseconds, std::uint64_t iterations) {
  constexpr int kRounds = 3;  // each starts from the previous estimate
  std::uint64_t units = 1000;
  for (int round = 0; round < kRounds; ++round) {
    const double took = std::max(time_iterations(nullptr, units, iterations), 1.0);
    const double wanted = static_cast<double>(units) * nanoseconds / took;
    units = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::llround(wanted)));
  }
  return units;
}

Overlap OverlapMeasurement::measure(const Call& call, std::uint64_t iterations) {
  Overlap overlap{.iterations = iterations, .communication = time_iterations(&call, 0, iterations)};
  const std::uint64_t units = units_for(overlap.communication, iterations);
  overlap.computation = time_iterations(nullptr, units, iterations);
  overlap.overall = time_iterations(&call, units, iterations);
  overlap.percent = overlap_percent(overlap.communication, overlap.computation, overlap.overall);
  return overlap;
}

}  // namespace hccl_perf
