// SPDX-License-Identifier: Apache-2.0
// Formats the table's lines. Column widths are those of nccl-tests, because scripts split lines at
// fixed columns.
#include "table.h"

#include "quantities.h"
#include "text.h"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <utility>

namespace hccl_perf {
namespace {

// Like snprintf, but returns a string.
[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...) {
  std::array<char, 512> line{};
  va_list values;
  va_start(values, pattern);
  const int length = std::vsnprintf(line.data(), line.size(), pattern, values);
  va_end(values);
  return {line.data(), std::min(static_cast<std::size_t>(length), line.size() - 1)};
}

std::string device_lines(const std::vector<RankFacts>& ranks) {
  std::string lines = "# Using devices\n";
  for (const RankFacts& rank : ranks) {
    lines += format("#  Rank %2d Group %2d Pid %6d on %10s device %2d %s\n", rank.rank, 0, rank.pid,
                    rank.host, rank.module_id, rank.device);
  }
  return lines;
}

// Returns a line with the ranks of each named node, or an empty string if no node has a name.
std::string node_line(const std::vector<RankFacts>& ranks) {
  std::vector<std::pair<std::string, std::vector<int>>> nodes;
  for (const RankFacts& rank : ranks) {
    if (rank.node[0] == '\0') continue;
    auto node = std::find_if(nodes.begin(), nodes.end(),
                             [&](const auto& known) { return known.first == rank.node; });
    if (node == nodes.end()) node = nodes.insert(node, {rank.node, {}});
    node->second.push_back(rank.rank);
  }
  std::string line;
  for (const auto& [name, members] : nodes) {
    line += text(line.empty() ? "# Nodes (HCCL_NODE_ID): " : "; ",
                 members.size() == 1 ? "rank " : "ranks ", format_ranks(members), " on ", name);
  }
  return line.empty() ? line : line + "\n";
}

// Formats a time in microseconds, with the same number of decimals as nccl-tests.
std::string microseconds(double nanoseconds) {
  const double value = nanoseconds / 1000.0;
  if (value >= 10000.0) return format("%7.0f", value);
  if (value >= 100.0) return format("%7.1f", value);
  return format("%7.2f", value);
}

std::string cell_columns(const Row& row, const CellResult& cell, Averaging averaging) {
  const Bandwidth rate = bandwidth(row, cell, averaging);
  const std::string wrong = cell.wrong ? std::to_string(*cell.wrong) : "N/A";
  return format("  %7s  %6.2f  %6.2f  %5s", microseconds(cell.nanoseconds.by(averaging)).c_str(),
                rate.algorithm, rate.bus, wrong.c_str());
}

// Returns a string such as "min 5.10 p50 5.30 p95 6.10 p99 7.20 max 9.00 us (100 calls, slowest
// rank 3)".
std::string latency_text(const Latency& latency) {
  const Percentiles& time = latency.nanoseconds;
  return format("min %.2f p50 %.2f p95 %.2f p99 %.2f max %.2f us (%llu calls, slowest rank %d)",
                time.minimum / 1e3, time.p50 / 1e3, time.p95 / 1e3, time.p99 / 1e3,
                time.maximum / 1e3, static_cast<unsigned long long>(latency.iterations),
                latency.slowest_rank);
}

// Returns a string such as "communication 10.10 computation 10.05 overall 12.20 us: 79.1 % hidden
// (100 calls)".
std::string overlap_text(const Overlap& overlap) {
  return format("communication %.2f computation %.2f overall %.2f us: %.1f %% hidden (%llu calls)",
                overlap.communication / 1e3, overlap.computation / 1e3, overlap.overall / 1e3,
                overlap.percent, static_cast<unsigned long long>(overlap.iterations));
}

// Returns the comment lines below a row for one placement.
std::string notes(const Row& row, const char* placement, const CellResult& cell,
                  const Options& options) {
  std::string lines;
  if (const auto rate = messages_per_second(row, cell, options.averaging))
    lines += format("#   message rate %.0f messages/s from %d sender%s\n", *rate, row.ranks / 2,
                    row.ranks == 2 ? "" : "s");
  if (options.latency && cell.latency)
    lines += text("#   latency ", placement, ' ', latency_text(*cell.latency), "\n");
  if (cell.overlap)
    lines += text("#   overlap ", placement, ' ', overlap_text(*cell.overlap), "\n");
  return lines;
}

}  // namespace

std::string table_header(const Options& options, int library, const std::vector<RankFacts>& ranks) {
  const bool by_factor = options.step_factor > 1;
  std::string lines =
      text("# hccl-perf ", HCCL_PERF_VERSION, " ", options.collective->name,
           "_perf hccl-headers=", HCCL_VERSION_CODE, " hccl-library=", library, "\n");
  lines += text("# nThread ", options.threads, " nGpus ", options.processes, " minBytes ",
                options.min_bytes, " maxBytes ", options.max_bytes,
                " step: ", by_factor ? options.step_factor : options.step_bytes,
                by_factor ? "(factor)" : "(bytes)", " warmup iters: ", options.warmup,
                " iters: ", options.iterations, " agg iters: 1 validation: ", options.checks,
                " graph: 0\n#\n");
  lines += device_lines(ranks);
  lines += node_line(ranks);
  lines += "#\n";
  lines += format(
      "# %10s  %12s  %8s  %6s  %6s           out-of-place                       in-place          "
      "\n",
      "", "", "", "", "");
  lines += format("# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s %6s  %7s  %6s  %6s %6s  %s\n", "size",
                  "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "time",
                  "algbw", "busbw", "#wrong", "algo  transport");
  lines += format("# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %5s  %7s  %6s  %6s  %5s\n", "(B)",
                  "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)",
                  "(GB/s)", "");
  return lines;
}

std::string table_row(const Row& row, const Options& options) {
  std::string line = format("%12llu  %12llu  %8s  %6s  %6d",
                            static_cast<unsigned long long>(row.counts.shown_bytes),
                            static_cast<unsigned long long>(row.counts.call), row.type.name,
                            row.reduction.name, row.root);
  line += cell_columns(row, row.out_of_place, options.averaging);
  line += row.in_place ? cell_columns(row, *row.in_place, options.averaging)
                       : format("  %7s  %6s  %6s  %5s", "N/A", "N/A", "N/A", "N/A");
  const Traffic how = row.out_of_place.how();
  line += text("  ", how.algorithm, "  ", how.transport, "\n");
  line += notes(row, "out-of-place", row.out_of_place, options);
  if (row.in_place) line += notes(row, "in-place    ", *row.in_place, options);
  return line;
}

std::string table_footer(const Totals& totals) {
  return format("# Out of bounds values : %llu %s\n# Avg bus bandwidth    : %g \n#\n",
                static_cast<unsigned long long>(totals.wrong()),
                totals.wrong() == 0 ? "OK" : "FAILED", totals.average_bus_bandwidth());
}

}  // namespace hccl_perf
