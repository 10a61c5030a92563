// SPDX-License-Identifier: Apache-2.0
// The command line of hccl-perf: option letters, long names and defaults as in nccl-tests, and
// additional options.
#pragma once

#include "collective.h"
#include "data_type.h"
#include "statistics.h"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace hccl_perf {

// The synchronisation after each call of a timed pass (nccl-tests -z).
enum class Blocking {
  none = 0,          // calls are queued back to back
  wait_barrier = 1,  // the host waits for the call, then for a barrier
  wait = 2,          // the host waits
  outer = 3          // the same as 1, because -m is always 1
};

struct RowCase {
  DataType type{};
  Reduction reduction{};
  int root = -1;  // -1 for a collective without a root
  std::uint64_t bytes = 0;
};

struct Options {
  const Collective* collective = nullptr;
  std::uint64_t min_bytes = 32ULL << 20;
  std::uint64_t max_bytes = 32ULL << 20;
  std::uint64_t step_bytes = 1ULL << 20;
  std::uint64_t step_factor = 1;  // if at least 2, replaces step_bytes
  int processes = 1;              // -g
  bool processes_given = false;
  int threads = 1;  // -t: ranks per process, each with a thread and a device
  int nodes = 1;    // nodes emulated on this machine, each a block of consecutive processes
  std::uint64_t iterations = 20;
  std::uint64_t warmup = 1;
  double min_time = 0;        // minimum seconds of a timed pass; 0 for exactly `iterations`
  std::uint64_t repeats = 1;  // timed passes per cell, whose median is reported
  Blocking blocking = Blocking::none;
  std::uint64_t cycles = 1;  // 0 for an endless run
  std::uint64_t checks = 1;  // number of checked runs per placement; 0 for none
  std::vector<Reduction> reductions;
  std::vector<DataType> types;
  std::string reduction_name = "sum";
  std::string type_name = "float";
  int root = 0;
  bool all_roots = false;
  Averaging averaging = Averaging::average;
  bool overlap = false;  // measure how much of a call is hidden behind computation
  bool latency = false;  // show the latency pass in the table
  std::uint64_t latency_iterations = 100;
  double timeout = 0;  // seconds for the whole run; 0 for no limit
  std::string json_path;
  std::string csv_path;
  std::string raw_path;
  std::string baseline_path;      // the JSON file of an earlier run to compare with
  double compare_threshold = 10;  // in percent; smaller changes of a median do not count
  std::optional<int> plan_rank;   // if set, print this rank's steps and measure nothing
  bool plan_json = false;
  bool standalone = false;                // ignore the launcher's variables
  std::vector<std::string> command_line;  // unchanged, starting with the program's name

  [[nodiscard]] bool wants_latency() const {
    return latency || !(json_path.empty() && raw_path.empty());
  }
  // Returns whether an option needs all rows at the end of the run.
  [[nodiscard]] bool wants_results() const {
    return !(json_path.empty() && csv_path.empty() && raw_path.empty() && baseline_path.empty());
  }
  [[nodiscard]] bool barrier_between_calls() const {
    return blocking == Blocking::wait_barrier || blocking == Blocking::outer;
  }
  [[nodiscard]] std::vector<std::uint64_t> sizes() const;
  // Returns the rows of a run of `ranks` ranks, in the order of the table.
  [[nodiscard]] std::vector<RowCase> cases(int ranks) const;

 private:
  [[nodiscard]] std::vector<int> roots(int ranks) const;
};

// The output of --help or --version.
struct Text {
  std::string text;
};

// Parses the command line. Options that are not given get defaults, some of which depend on other
// options. Throws UsageError.
[[nodiscard]] std::variant<Options, Text> parse_options(int argc, const char* const* argv);

}  // namespace hccl_perf
