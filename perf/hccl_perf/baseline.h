// SPDX-License-Identifier: Apache-2.0
// --compare: reads the --json file of an earlier run.
#pragma once

#include "host_facts.h"
#include "options.h"
#include "row.h"

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace hccl_perf {

// The minimum number of timed passes per cell of a baseline. Fewer would not show the noise.
inline constexpr std::uint64_t kFewestSamples = 5;

// Identifies a cell of a run. --compare compares cells that have equal keys in two runs of the same
// collective.
struct CellKey {
  std::string type;
  std::string redop;
  int root = -1;
  std::uint64_t size_bytes = 0;
  Placement placement = Placement::out_of_place;

  [[nodiscard]] bool operator<(const CellKey& other) const {
    return std::tie(type, redop, root, size_bytes, placement) <
           std::tie(other.type, other.redop, other.root, other.size_bytes, other.placement);
  }
};

// The result of every timed pass of each cell, in nanoseconds. With -N, a cell has one row in each
// cycle; the passes of all its rows are merged.
struct CellSamples {
  std::vector<CellKey> keys;  // in the order of their first rows
  std::map<CellKey, std::vector<double>> samples;

  void add(const CellKey& key, const std::vector<double>& more);
};

[[nodiscard]] CellSamples cell_samples(const std::vector<Row>& rows, Averaging averaging);

struct Baseline {
  std::string path;
  std::string collective;
  int ranks = 0;
  std::string averaging;  // as averaging_name() returns it
  int blocking = 0;
  std::string started;
  HostFacts host;
  CellSamples cells;
};

// Reads a baseline. Throws UsageError if the file cannot be read, does not have the form that
// hccl-perf's --json writes, contains a sample that is not positive, or has fewer than
// kFewestSamples timed passes for any cell.
[[nodiscard]] Baseline read_baseline(const std::string& path);

// Throws UsageError if a run with these options on `ranks` ranks differs from the baseline in the
// collective, the number of ranks, -a or -z, or has no cell in common with the baseline.
void require_comparable(const Baseline& baseline, const Options& options, int ranks);

}  // namespace hccl_perf
