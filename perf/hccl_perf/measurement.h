// SPDX-License-Identifier: Apache-2.0
// Measures one cell of the table with checked runs, warm-up calls and timed passes. Depending on
// the options, adds a latency pass that waits for each call, passes that measure overlap, and a
// pass that times each queued call. Times are in nanoseconds per call; except in Overlap, they are
// divided by Collective::messages_in_turn().
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

// The result of the latency pass. For each iteration, the ranks' times are combined as -a selects;
// the percentiles are over these combined times.
struct Latency {
  std::uint64_t iterations = 0;
  Percentiles nanoseconds{};
  int slowest_rank = 0;  // by mean latency
};

// The time of every call of two passes, by rank. Only rank 0 has these times, and only with --raw.
struct RawTimes {
  std::vector<std::vector<double>>
      queued;  // a pass of calls queued back to back: from the end of a call to the end of the next
  std::vector<std::vector<double>> single;  // the latency pass
};

struct CellResult {
  std::uint64_t iterations = 0;     // iterations of the last timed pass
  std::vector<AcrossRanks> passes;  // times of each timed pass
  AcrossRanks nanoseconds{};        // times of the median pass
  std::vector<Traffic> traffic;     // traffic of the last timed pass, by rank
  std::optional<Latency> latency;
  std::optional<Overlap> overlap;
  RawTimes raw;
  std::optional<std::uint64_t> wrong;  // number of wrong elements on all ranks in all checked runs;
                                       // empty if nothing was checked
  std::uint64_t rounded = 0;           // number of elements that are correct but not bit-identical

  // Returns rank 0's traffic, which includes the names of the algorithm and the transport. Both
  // names are empty before the last timed pass.
  [[nodiscard]] Traffic how() const { return traffic.empty() ? Traffic{} : traffic.front(); }
  // Returns the time of each timed pass, combined over the ranks.
  [[nodiscard]] std::vector<double> samples(Averaging averaging) const;
};

class Measurement {
 public:
  // Calls `announce` at the start of each phase.
  Measurement(const Options& options, Session& session, RankExchange& exchange,
              Verification& verification, std::function<void(Phase)> announce);

  // Measures one timed pass. All ranks must call add_pass() and complete() for the same cells. All
  // get the same results, except for `raw`.
  void add_pass(const Cell& cell, CellResult& result);
  // Measures the last timed pass, and everything else in CellResult.
  void complete(const Cell& cell, CellResult& result);

  // Returns the number of wrong elements on this rank so far.
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
  std::uint64_t run_ = 0;  // number of the current inputs, which makes their data unique
  std::uint64_t own_wrong_ = 0;
};

// Estimates the number of iterations that take `min_time` seconds if `iterations` iterations took
// `seconds`. Adds a margin. Returns more than `iterations`, but at most 1000 times as many.
[[nodiscard]] std::uint64_t iterations_for(double min_time, std::uint64_t iterations,
                                           double seconds);

}  // namespace hccl_perf
