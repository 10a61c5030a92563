// SPDX-License-Identifier: Apache-2.0
// One row of results, for the table and the result files.
#pragma once

#include "measurement.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hccl_perf {

// The facts about one rank that the table's header shows. Ranks exchange this structure as bytes,
// so it must be trivially copyable.
struct RankFacts {
  int rank = 0;
  int pid = 0;
  int module_id = 0;
  char host[64] = {};
  char node[65] = {};  // HCCL_NODE_ID, or empty if it is not set
  char device[32] = {};
};

struct Row {
  const Collective* collective = nullptr;
  int ranks = 1;
  Counts counts{};
  DataType type{};
  Reduction reduction{};
  int root = -1;
  CellResult out_of_place;
  std::optional<CellResult> in_place;  // empty for collectives that cannot be in place

  [[nodiscard]] std::uint64_t wrong() const {
    return out_of_place.wrong.value_or(0) + (in_place ? in_place->wrong.value_or(0) : 0);
  }
};

// Bandwidths in GB/s (10^9 bytes per second).
struct Bandwidth {
  double algorithm = 0;
  double bus = 0;
};

[[nodiscard]] inline Bandwidth bandwidth(const Row& row, const CellResult& cell,
                                         Averaging averaging) {
  const double nanoseconds = cell.nanoseconds.by(averaging);
  if (nanoseconds <= 0) return {};
  const double algorithm = static_cast<double>(row.counts.shown_bytes) / nanoseconds;
  return {algorithm, algorithm * row.collective->bus_factor(row.ranks)};
}

// Returns the total message rate of all senders, in messages per second. Returns nothing if the
// collective is not message_rate or the cell was not timed.
[[nodiscard]] inline std::optional<double> messages_per_second(const Row& row,
                                                               const CellResult& cell,
                                                               Averaging averaging) {
  const double nanoseconds = cell.nanoseconds.by(averaging);
  if (row.collective->kind != CollectiveKind::message_rate || nanoseconds <= 0) return std::nullopt;
  const int senders = row.ranks / 2;
  return senders * 1e9 / nanoseconds;
}

// Totals of a run, for the table's footer and the JSON file.
class Totals {
 public:
  void add(const Row& row, Averaging averaging) {
    wrong_ += row.wrong();
    add_cell(bandwidth(row, row.out_of_place, averaging).bus);
    if (row.in_place) add_cell(bandwidth(row, *row.in_place, averaging).bus);
  }
  [[nodiscard]] std::uint64_t wrong() const { return wrong_; }
  [[nodiscard]] double average_bus_bandwidth() const {
    return cells_ == 0 ? 0 : bus_sum_ / static_cast<double>(cells_);
  }

 private:
  void add_cell(double bus) {
    bus_sum_ += bus;
    ++cells_;
  }

  std::uint64_t wrong_ = 0;
  std::uint64_t cells_ = 0;
  double bus_sum_ = 0;
};

}  // namespace hccl_perf
