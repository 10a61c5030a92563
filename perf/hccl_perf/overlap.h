// SPDX-License-Identifier: Apache-2.0
// --overlap: how much of a collective is hidden behind computing on the host, measured as the OSU
// micro-benchmarks do for non-blocking collectives.
#pragma once

#include "rank_exchange.h"
#include "session.h"
#include "statistics.h"

#include <cstdint>

namespace hccl_perf {

// Nanoseconds per iteration, of the ranks taken together.
struct Overlap {
  std::uint64_t iterations = 0;
  double communication = 0;  // call and synchronise, alone
  double computation = 0;    // of about the same length, alone
  double overall = 0;        // call, compute, synchronise
  double percent = 0;        // of the communication that computing hid
};

// The part of `communication` that `overall` does not show beyond `computation`, from 0 to 100.
[[nodiscard]] double overlap_percent(double communication, double computation, double overall);

// Does a fixed amount of work: `units` short chains of dependent multiplications. Work rather than
// a time, so that a processor which is shared with communication shows it.
void compute(std::uint64_t units);

class OverlapMeasurement {
 public:
  OverlapMeasurement(Session& session, RankExchange& exchange, Averaging averaging)
      : session_(session), exchange_(exchange), averaging_(averaging) {}

  // Every rank calls it for the same cell, and gets the same result.
  [[nodiscard]] Overlap measure(const Call& call, std::uint64_t iterations);

 private:
  // Nanoseconds of an iteration that queues the call if `call` is not null, computes `units`, and
  // synchronises.
  [[nodiscard]] double time_iterations(const Call* call, std::uint64_t units,
                                       std::uint64_t iterations);
  // Units that all ranks at once compute in about `nanoseconds`.
  [[nodiscard]] std::uint64_t units_for(double nanoseconds, std::uint64_t iterations);

  Session& session_;
  RankExchange& exchange_;
  Averaging averaging_;
};

}  // namespace hccl_perf
