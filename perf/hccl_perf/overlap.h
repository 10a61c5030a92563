// SPDX-License-Identifier: Apache-2.0
// --overlap: measures how much of a collective is hidden behind computation on the host, as the OSU
// micro-benchmarks do for non-blocking collectives.
#pragma once

#include "rank_exchange.h"
#include "session.h"
#include "statistics.h"

#include <cstdint>

namespace hccl_perf {

// Nanoseconds per iteration, combined over the ranks.
struct Overlap {
  std::uint64_t iterations = 0;
  double communication = 0;  // call and synchronise, without computation
  double computation = 0;    // computation of about the same length, without communication
  double overall = 0;        // call, compute, synchronise
  double percent = 0;        // share of the communication that is hidden behind the computation
};

// Returns the percentage of `communication` that is hidden: how much shorter `overall` is than
// communication and computation in sequence. The result is from 0 to 100.
[[nodiscard]] double overlap_percent(double communication, double computation, double overall);

// Performs `units` times a fixed number of multiplications and additions, each of which depends on
// the previous one. The function takes longer if communication uses the same core.
void compute(std::uint64_t units);

class OverlapMeasurement {
 public:
  OverlapMeasurement(Session& session, RankExchange& exchange, Averaging averaging)
      : session_(session), exchange_(exchange), averaging_(averaging) {}

  // Measures the overlap of `call`. All ranks must call measure() for the same cell, and all get
  // the same result.
  [[nodiscard]] Overlap measure(const Call& call, std::uint64_t iterations);

 private:
  // Returns the nanoseconds per iteration. An iteration computes `units`. If `call` is not null,
  // the iteration first queues the call, and synchronises at the end.
  [[nodiscard]] double time_iterations(const Call* call, std::uint64_t units,
                                       std::uint64_t iterations);
  // Returns the number of units that take about `nanoseconds` when all ranks compute at the same
  // time.
  [[nodiscard]] std::uint64_t units_for(double nanoseconds, std::uint64_t iterations);

  Session& session_;
  RankExchange& exchange_;
  Averaging averaging_;
};

}  // namespace hccl_perf
