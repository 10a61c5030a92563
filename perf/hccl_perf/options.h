// SPDX-License-Identifier: Apache-2.0
// The command line of hccl-perf: letters, long names and defaults of nccl-tests, and a few of our
// own.
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

// The wait that follows each call of a timed pass (nccl-tests -z).
enum class Blocking {
  none = 0,          // the calls are queued back to back
  wait_barrier = 1,  // the host waits, then all ranks meet
  wait = 2,          // the host waits
  outer = 3          // as 1 after each aggregate of -m calls: with one call in each, the same as 1
};

struct RowCase {
  DataType type{};
  Reduction reduction{};
  int root = -1;  // for a collective without a root too
  std::uint64_t bytes = 0;
};

struct Options {
  const Collective* collective = nullptr;
  std::uint64_t min_bytes = 32ULL << 20;
  std::uint64_t max_bytes = 32ULL << 20;
  std::uint64_t step_bytes = 1ULL << 20;
  std::uint64_t step_factor = 1;  // 2 or more: sizes grow by it instead of by step_bytes
  int processes = 1;              // -g
  bool processes_given = false;
  int threads = 1;  // -t: ranks per process, a thread and a device each
  int nodes = 1;    // emulated on this machine: blocks of processes, as even as they can be
  std::uint64_t iterations = 20;
  std::uint64_t warmup = 1;
  double min_time = 0;  // seconds the first timed pass lasts at least; 0: exactly `iterations`
  std::uint64_t repeats = 1;  // timed passes per cell; the median one counts
  Blocking blocking = Blocking::none;
  std::uint64_t cycles = 1;  // 0: for ever
  std::uint64_t checks = 1;  // checked runs per placement; 0: none
  std::vector<Reduction> reductions;
  std::vector<DataType> types;
  std::string reduction_name = "sum";
  std::string type_name = "float";
  int root = 0;
  bool all_roots = false;
  Averaging averaging = Averaging::average;
  bool overlap = false;  // measure how much of a call computing hides
  bool latency = false;  // show the latency pass in the table
  std::uint64_t latency_iterations = 100;
  double timeout = 0;  // seconds for the whole run; 0: none
  std::string json_path;
  std::string csv_path;
  std::string raw_path;
  std::string baseline_path;      // a JSON file of an earlier run, to compare with
  double compare_threshold = 10;  // percent that a time must change to count
  std::optional<int> plan_rank;   // whose steps to print instead of measuring
  bool plan_json = false;
  bool standalone = false;                // ignore the launcher's variables
  std::vector<std::string> command_line;  // as given, the program's name first

  [[nodiscard]] bool wants_latency() const {
    return latency || !(json_path.empty() && raw_path.empty());
  }
  // Returns whether results are asked for that are known only at the end of the run.
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

// The text that --help or --version asked for.
struct Text {
  std::string text;
};

// Parses the command line: what is written, with the defaults that follow from it. Throws
// UsageError.
[[nodiscard]] std::variant<Options, Text> parse_options(int argc, const char* const* argv);

}  // namespace hccl_perf
