// SPDX-License-Identifier: Apache-2.0
// Measures one cell of the table: checked runs, warm-up, a timed pass of calls queued back to back,
// and a separate latency pass of single calls.
#pragma once

#include "board.h"
#include "options.h"
#include "overlap.h"
#include "rank_exchange.h"
#include "session.h"
#include "statistics.h"
#include "verification.h"
#include "workload.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace hccl_perf {

// Per-call latency in the latency pass. -a selects how the ranks' times are combined for each
// iteration.
struct Latency {
  std::uint64_t iterations = 0;
  Percentiles nanoseconds{};
  int slowest_rank = 0;  // by mean latency
};

// Nanoseconds of every call, by rank. Only rank 0 has them, and only with --raw.
struct RawTimes {
  std::vector<std::vector<double>>
      queued;  // calls queued back to back, from the end of one to the end of the next
  std::vector<std::vector<double>> single;  // calls of the latency pass
};

struct CellResult {
  std::uint64_t iterations = 0;     // number in the last timed pass
  std::vector<AcrossRanks> passes;  // nanoseconds per iteration of each timed pass
  AcrossRanks nanoseconds{};        // times of the median pass
  std::vector<Traffic> traffic;     // traffic of the last timed pass, by rank
  std::optional<Latency> latency;
  std::optional<Overlap> overlap;
  RawTimes raw;
  std::optional<std::uint64_t> wrong;  // number of wrong elements on all ranks in all checked runs;
                                       // empty if nothing was checked
  std::uint64_t rounded = 0;           // number of elements that are correct but not bit-identical

  // Returns how the calls ran, or an object with two empty names before the first measurement.
  [[nodiscard]] Traffic how() const { return traffic.empty() ? Traffic{} : traffic.front(); }
  // Returns the nanoseconds per iteration of each timed pass.
  [[nodiscard]] std::vector<double> samples(Averaging averaging) const;
};

class Measurement {
 public:
  // Each rank calls `announce` at the start of each phase.
  Measurement(const Options& options, Session& session, RankExchange& exchange,
              Verification& verification, std::function<void(Phase)> announce);

  // Measures one timed pass. All ranks must call it for the same cells, and all get the same
  // results. The same applies to complete().
  void add_pass(const Cell& cell, CellResult& result);
  // Measures the last timed pass, and everything else that the result contains.
  void complete(const Cell& cell, CellResult& result);

  // Returns the number of wrong elements on this rank so far, even before the ranks' numbers have
  // been summed.
  [[nodiscard]] std::uint64_t own_wrong() const { return own_wrong_; }

 private:
  void check(const Cell& cell, CellResult& result);
  [[nodiscard]] double run_iterations(const Cell& cell, std::uint64_t iterations);
  [[nodiscard]] AcrossRanks time_iterations(const Cell& cell, std::uint64_t iterations);
  void warm_up(const Cell& cell);
  void time_cell(const Cell& cell, CellResult& result);
  void measure_latency(const Cell& cell, CellResult& result);
  [[nodiscard]] Latency summarise_latency(const std::vector<std::vector<double>>& by_rank) const;
  void measure_overlap(const Cell& cell, CellResult& result);
  [[nodiscard]] static std::uint64_t affordable_calls(const Cell& cell, const CellResult& result);
  void measure_each_queued_call(const Cell& cell, CellResult& result);

  const Options& options_;
  Session& session_;
  RankExchange& exchange_;
  Verification& verification_;
  std::function<void(Phase)> announce_;
  TrafficMeter meter_;
  std::uint64_t run_ = 0;  // number of the checked run, which makes its data unique
  std::uint64_t own_wrong_ = 0;
};

// Returns the number of iterations that take at least `min_time` seconds, with a margin, if
// `iterations` iterations took `seconds`.
[[nodiscard]] std::uint64_t iterations_for(double min_time, std::uint64_t iterations,
                                           double seconds);

}  // namespace hccl_perf
