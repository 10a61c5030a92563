// SPDX-License-Identifier: Apache-2.0
// The command line of hccl-perf: letters, long names and defaults of nccl-tests, and a few of our
// own.
#pragma once

#include "collective.h"
#include "data_type.h"
#include "statistics.h"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace hccl_perf {

struct Options {
  const Collective* collective = nullptr;
  std::uint64_t min_bytes = 32ULL << 20;
  std::uint64_t max_bytes = 32ULL << 20;
  std::uint64_t step_bytes = 1ULL << 20;
  std::uint64_t step_factor = 1;  // 2 or more: sizes grow by it instead of by step_bytes
  int processes = 1;              // -g
  bool processes_given = false;
  int threads = 1;  // -t: ranks per process, a thread and a device each
  std::uint64_t iterations = 20;
  std::uint64_t warmup = 1;
  double min_time = 0;       // seconds a timed cell lasts at least; 0: exactly `iterations`
  std::uint64_t cycles = 1;  // 0: for ever
  std::uint64_t checks = 1;  // checked runs per placement; 0: none
  std::vector<Reduction> reductions;
  std::vector<DataType> types;
  std::string reduction_name = "sum";
  std::string type_name = "float";
  int root = 0;
  bool all_roots = false;
  Averaging averaging = Averaging::average;
  bool latency = false;  // show the latency pass in the table
  std::uint64_t latency_iterations = 100;
  double timeout = 0;  // seconds for the whole run; 0: none
  std::string json_path;
  bool standalone = false;  // ignore the launcher's variables

  [[nodiscard]] bool wants_latency() const { return latency || !json_path.empty(); }
  [[nodiscard]] std::vector<std::uint64_t> sizes() const;
};

// What --help or --version asked to be printed.
struct Text {
  std::string text;
};

// Parses the command line. Throws UsageError.
[[nodiscard]] std::variant<Options, Text> parse_options(int argc, const char* const* argv);

}  // namespace hccl_perf
