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

// Per-call latency over the iterations of the latency pass. Each iteration counts as the ranks'
// times taken together by -a.
struct Latency {
  std::uint64_t iterations = 0;
  Percentiles nanoseconds{};
  int slowest_rank = 0;  // by mean latency
};

// Nanoseconds of every call, by rank. Kept on rank 0 and with --raw alone.
struct RawTimes {
  std::vector<std::vector<double>> queued;  // calls queued back to back: from end to end
  std::vector<std::vector<double>> single;  // those of the latency pass
};

struct CellResult {
  std::uint64_t iterations = 0;     // of the last timed pass
  std::vector<AcrossRanks> passes;  // nanoseconds per iteration of each timed pass
  AcrossRanks nanoseconds{};        // those of the median pass
  std::vector<Traffic> traffic;     // of the last timed pass, by rank
  std::optional<Latency> latency;
  std::optional<Overlap> overlap;
  RawTimes raw;
  std::optional<std::uint64_t>
      wrong;                  // elements on all ranks and checked runs; none if nothing was checked
  std::uint64_t rounded = 0;  // likewise, those that are right but not bit by bit

  // Returns how its calls ran: two empty names before anything was measured.
  [[nodiscard]] Traffic how() const { return traffic.empty() ? Traffic{} : traffic.front(); }
  // Nanoseconds per iteration of each timed pass.
  [[nodiscard]] std::vector<double> samples(Averaging averaging) const;
};

class Measurement {
 public:
  // `announce` is called at the start of each phase, by every rank.
  Measurement(const Options& options, Session& session, RankExchange& exchange,
              Verification& verification, std::function<void(Phase)> announce);

  // Every rank calls these for the same cells; all get the same results. One timed pass:
  void add_pass(const Cell& cell, CellResult& result);
  // The last timed pass and all else.
  void complete(const Cell& cell, CellResult& result);

  // Returns the wrong elements that this rank has seen so far, whether or not the ranks have summed
  // them up.
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
  std::uint64_t run_ = 0;  // numbers the checked runs, so that no two have the same data
  std::uint64_t own_wrong_ = 0;
};

// Iterations that last `min_time` seconds when `iterations` of them took `seconds`, with a margin.
[[nodiscard]] std::uint64_t iterations_for(double min_time, std::uint64_t iterations,
                                           double seconds);

}  // namespace hccl_perf
