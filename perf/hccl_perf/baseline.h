// SPDX-License-Identifier: Apache-2.0
// An earlier run to compare with, read from its --json file.
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

// The minimum number of timed passes of a cell for an estimate of its noise.
inline constexpr std::uint64_t kFewestSamples = 5;

// Identifies a cell among the runs of one collective. Cells with equal keys are comparable.
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

// The timed passes of each cell, in nanoseconds. Rows of the same cell (-N) are merged.
struct CellSamples {
  std::vector<CellKey> keys;  // in the order of their first row
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

// Reads a baseline. Throws UsageError if the file is missing, is not JSON, or was not written by
// hccl-perf with enough timed passes.
[[nodiscard]] Baseline read_baseline(const std::string& path);

// Throws UsageError if a run with these options on `ranks` ranks has no cell in common with the
// baseline, or measures something different.
void require_comparable(const Baseline& baseline, const Options& options, int ranks);

}  // namespace hccl_perf
