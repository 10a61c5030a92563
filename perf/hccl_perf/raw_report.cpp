// SPDX-License-Identifier: Apache-2.0
// Formats the file of raw times.
#include "quantities.h"
#include "report_formats.h"
#include "text.h"

namespace hccl_perf {
namespace {

constexpr int kRawDecimals = 1;  // tenths of a nanosecond

void add_pass(std::string& lines, const std::string& cell, const char* pass,
              const std::vector<std::vector<double>>& by_rank) {
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    for (std::size_t call = 0; call < by_rank[rank].size(); ++call) {
      lines += text(cell, pass, ',', rank, ',', call, ',',
                    decimal(by_rank[rank][call], kRawDecimals), '\n');
    }
  }
}

}  // namespace

std::string raw_text(const Results& results) {
  std::string lines =
      "collective,ranks,size_bytes,count,type,redop,root,cycle,placement,pass,rank,call,time_ns\n";
  const std::size_t rows_of_cycle = results.rows_of_cycle();
  for (std::size_t i = 0; i < results.rows.size(); ++i) {
    const Row& row = results.rows[i];
    const auto add = [&](Placement placement, const CellResult& cell) {
      const std::string key =
          text(row.collective->name, ',', row.ranks, ',', row.counts.shown_bytes, ',',
               row.counts.call, ',', row.type.name, ',', row.reduction.name, ',', row.root, ',',
               i / rows_of_cycle, ',', placement_name(placement), ',');
      add_pass(lines, key, "queued", cell.raw.queued);
      add_pass(lines, key, "single", cell.raw.single);
    };
    add(Placement::out_of_place, row.out_of_place);
    if (row.in_place) add(Placement::in_place, *row.in_place);
  }
  return lines;
}

}  // namespace hccl_perf
