// SPDX-License-Identifier: Apache-2.0
// The measurements and the environment of a run, from which the result files are written.
#pragma once

#include "host_facts.h"
#include "options.h"
#include "row.h"

#include <chrono>
#include <string>
#include <vector>

namespace hccl_perf {

// Facts about the library that rank 0's process uses.
struct LibraryFacts {
  int version = 0;      // interface version from hcclGetVersion()
  std::string release;  // from synDriverGetVersion()
  std::string path;     // path of the library's file
};

struct Results {
  const Options& options;
  LibraryFacts library;
  std::vector<RankFacts> ranks;
  HostFacts host;
  std::vector<Variable> variables;  // of rank 0's process, from hccl_variables()
  std::chrono::system_clock::time_point started;
  std::vector<Row> rows;
  Totals totals;

  // Returns the number of rows in one cycle of the sweep, at least 1. -N sets the number of cycles.
  [[nodiscard]] std::size_t rows_of_cycle() const;
};

// Returns "out_of_place" or "in_place", the names used in all result files.
[[nodiscard]] constexpr const char* placement_name(Placement placement) {
  return placement == Placement::in_place ? "in_place" : "out_of_place";
}

// Returns a string such as "2026-05-01T12:34:56Z".
[[nodiscard]] std::string utc_time(std::chrono::system_clock::time_point time);

}  // namespace hccl_perf
