// SPDX-License-Identifier: Apache-2.0
// Formats the CSV file. Except for `placement`, each column has the name of a field of the JSON
// file, in which nested names are joined by underscores.
#include "quantities.h"
#include "report_formats.h"
#include "text.h"

#include <utility>

namespace hccl_perf {
namespace {

constexpr int kTenths = 1;           // decimal places of times in nanoseconds
constexpr int kBandwidthDigits = 6;  // decimal places of GB/s: a resolution of 1 kB/s

using Columns = std::vector<std::pair<std::string, std::string>>;  // (name, value) pairs

std::string nanoseconds(double value) { return decimal(value, kTenths); }

void add_latency(Columns& columns, const std::optional<Latency>& latency) {
  const auto add = [&](const char* name, const std::string& value) {
    columns.emplace_back(text("latency_ns_", name), latency ? value : "");
  };
  const Latency shown = latency.value_or(Latency{});
  add("iterations", text(shown.iterations));
  add("min", nanoseconds(shown.nanoseconds.minimum));
  add("mean", nanoseconds(shown.nanoseconds.mean));
  add("p50", nanoseconds(shown.nanoseconds.p50));
  add("p95", nanoseconds(shown.nanoseconds.p95));
  add("p99", nanoseconds(shown.nanoseconds.p99));
  add("max", nanoseconds(shown.nanoseconds.maximum));
  add("slowest_rank", text(shown.slowest_rank));
}

void add_overlap(Columns& columns, const std::optional<Overlap>& overlap) {
  const auto add = [&](const char* name, const std::string& value) {
    columns.emplace_back(text("overlap_", name), overlap ? value : "");
  };
  const Overlap shown = overlap.value_or(Overlap{});
  add("iterations", text(shown.iterations));
  add("communication_ns", nanoseconds(shown.communication));
  add("computation_ns", nanoseconds(shown.computation));
  add("overall_ns", nanoseconds(shown.overall));
  add("percent", decimal(shown.percent, 1));
}

Columns columns_of(const Row& row, Placement placement, const CellResult& cell,
                   Averaging averaging) {
  const Bandwidth rate = bandwidth(row, cell, averaging);
  const AcrossRanks& time = cell.nanoseconds;
  Columns columns{{"collective", row.collective->name},
                  {"ranks", text(row.ranks)},
                  {"size_bytes", text(row.counts.shown_bytes)},
                  {"count", text(row.counts.call)},
                  {"type", row.type.name},
                  {"redop", row.reduction.name},
                  {"root", text(row.root)},
                  {"algorithm", cell.how().algorithm},
                  {"transport", cell.how().transport},
                  {"placement", placement_name(placement)},
                  {"iterations", text(cell.iterations)},
                  {"time_ns", nanoseconds(time.by(averaging))},
                  {"algbw_gb_per_s", decimal(rate.algorithm, kBandwidthDigits)},
                  {"busbw_gb_per_s", decimal(rate.bus, kBandwidthDigits)},
                  {"wrong", cell.wrong ? text(*cell.wrong) : ""},
                  {"time_ns_across_ranks_rank0", nanoseconds(time.rank0)},
                  {"time_ns_across_ranks_avg", nanoseconds(time.average)},
                  {"time_ns_across_ranks_min", nanoseconds(time.minimum)},
                  {"time_ns_across_ranks_max", nanoseconds(time.maximum)},
                  {"time_ns_across_ranks_slowest_rank", text(time.slowest_rank)}};
  add_latency(columns, cell.latency);
  const auto messages = messages_per_second(row, cell, averaging);
  columns.emplace_back("messages_per_s", messages ? decimal(*messages, 0) : "");
  add_overlap(columns, cell.overlap);
  return columns;
}

std::string quoted(const std::string& field) {
  if (field.find_first_of(",\"\r\n") == std::string::npos) return field;
  std::string written = "\"";
  for (const char letter : field) written += letter == '"' ? "\"\"" : std::string(1, letter);
  return written + '"';
}

std::string line(const Columns& columns, std::string Columns::value_type::*part) {
  std::string written;
  for (const auto& column : columns) {
    if (!written.empty()) written += ',';
    written += quoted(column.*part);
  }
  return written + '\n';
}

}  // namespace

std::string csv_text(const Results& results) {
  const Averaging averaging = results.options.averaging;
  Row nothing;
  nothing.collective = results.options.collective;
  nothing.type = kDataTypes.front();
  nothing.reduction = kNoReduction;
  using Column = Columns::value_type;
  std::string written =
      line(columns_of(nothing, Placement::out_of_place, {}, averaging), &Column::first);
  const auto add = [&](const Row& row, Placement placement, const CellResult& cell) {
    written += line(columns_of(row, placement, cell, averaging), &Column::second);
  };
  for (const Row& row : results.rows) {
    add(row, Placement::out_of_place, row.out_of_place);
    if (row.in_place) add(row, Placement::in_place, *row.in_place);
  }
  return written;
}

}  // namespace hccl_perf
