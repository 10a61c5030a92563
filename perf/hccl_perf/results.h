// SPDX-License-Identifier: Apache-2.0
// All that a run measured and where it ran: what the files of results are made from.
#pragma once

#include "host_facts.h"
#include "options.h"
#include "row.h"

#include <chrono>
#include <string>
#include <vector>

namespace hccl_perf {

// The library that measured itself.
struct LibraryFacts {
  int version = 0;      // of the interface, as hcclGetVersion() says
  std::string release;  // as synDriverGetVersion() says
  std::string path;     // of its file
};

struct Results {
  const Options& options;
  LibraryFacts library;
  std::vector<RankFacts> ranks;
  HostFacts host;
  std::vector<Variable> variables;  // hccl_variables() of rank 0's process
  std::chrono::system_clock::time_point started;
  std::vector<Row> rows;
  Totals totals;

  // Rows of one cycle of the sweep (-N); at least 1.
  [[nodiscard]] std::size_t rows_of_cycle() const;
};

// "out_of_place" and "in_place", as all files of results call them.
[[nodiscard]] constexpr const char* placement_name(Placement placement) {
  return placement == Placement::in_place ? "in_place" : "out_of_place";
}

// "2026-05-01T12:34:56Z".
[[nodiscard]] std::string utc_time(std::chrono::system_clock::time_point time);

}  // namespace hccl_perf
