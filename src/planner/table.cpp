// SPDX-License-Identifier: Apache-2.0
#include "planner/table.h"

#include "base/text.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <string_view>

namespace hccl::planner {
namespace {

using algorithms::Algorithm;

constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();
constexpr int kAnyRanks = std::numeric_limits<int>::max();

// The largest message, in bytes, and the largest number of ranks for the one-shot all-reduce.
constexpr std::uint64_t kOneShotBytes = 16 << 10;
constexpr int kOneShotRanks = 8;

struct Row {
  Collective collective;
  std::uint64_t most_bytes;
  int most_ranks;
  const Algorithm* algorithm;
};

Row row(Collective collective, std::uint64_t most_bytes, std::string_view algorithm,
        int most_ranks = kAnyRanks) {
  return {collective, most_bytes, most_ranks, algorithms::find(algorithm, collective)};
}

// The algorithms for small messages take few hops; those for large messages move as little data as
// possible. The first row that fits is used.
std::span<const Row> table() {
  static const std::array rows = {
      row(Collective::all_reduce, kOneShotBytes, "one_shot", kOneShotRanks),
      row(Collective::all_reduce, 32 << 10, "halving_doubling"),
      row(Collective::all_reduce, kAny, "ring"),
      row(Collective::reduce_scatter, 16 << 10, "halving_doubling"),
      row(Collective::reduce_scatter, kAny, "ring"),
      row(Collective::all_gather, 16 << 10, "halving_doubling"),
      row(Collective::all_gather, kAny, "ring"),
      row(Collective::broadcast, 64 << 10, "tree"),
      row(Collective::broadcast, kAny, "chain"),
      row(Collective::reduce, 64 << 10, "tree"),
      row(Collective::reduce, kAny, "chain"),
      row(Collective::all_to_all, kAny, "pairwise"),
      row(Collective::barrier, kAny, "dissemination")};
  return rows;
}

const Row& row_for(Collective collective, std::uint64_t bytes, int ranks) {
  const auto fits = [&](const Row& row) {
    return row.collective == collective && bytes <= row.most_bytes && ranks <= row.most_ranks;
  };
  return *std::ranges::find_if(table(), fits);
}

}  // namespace

const Algorithm& algorithm_for(Collective collective, std::uint64_t bytes, int ranks) {
  return *row_for(collective, bytes, ranks).algorithm;
}

std::string row_text(Collective collective, std::uint64_t bytes, int ranks) {
  const Row& row = row_for(collective, bytes, ranks);
  const std::string sizes = row.most_bytes == kAny ? "for this and all larger sizes"
                                                   : text("up to ", row.most_bytes, " B");
  const std::string most_ranks =
      row.most_ranks == kAnyRanks ? "" : text(" and ", row.most_ranks, " ranks");
  return text("the table selects ", row.algorithm->name, ' ', sizes, most_ranks);
}

bool is_hierarchical(std::uint64_t bytes, int ranks) {
  return bytes > kOneShotBytes || ranks > kOneShotRanks;
}

}  // namespace hccl::planner
