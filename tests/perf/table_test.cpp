// SPDX-License-Identifier: Apache-2.0
// Tests the lines of the table, which scripts written for nccl-tests parse.
#include "table.h"

#include "sample_results.h"
#include "support/text_parts.h"

#include <cstring>
#include <sstream>

#include <gtest/gtest.h>

namespace hccl_perf {
namespace {

using hccl::test::expect_parts;

CellResult cell(double nanoseconds, std::uint64_t wrong) {
  CellResult result;
  result.iterations = 20;
  result.nanoseconds = across_ranks({nanoseconds, nanoseconds});
  result.traffic = {sample_traffic("ring", "shm+tcp")};
  result.wrong = wrong;
  return result;
}

Row all_reduce_row() {
  Row row;
  row.collective = find_collective("all_reduce");
  row.ranks = 8;
  row.type = kDataTypes[hcclFloat32];
  row.reduction = kReductions[hcclSum];
  row.counts = row.collective->counts(1 << 20, row.type, row.ranks);
  row.out_of_place = cell(1'000'000, 0);
  row.in_place = cell(500'000, 3);
  return row;
}

Options options() {
  Options made;
  made.collective = find_collective("all_reduce");
  made.types = {kDataTypes[hcclFloat32]};
  made.reductions = {kReductions[hcclSum]};
  return made;
}

std::vector<std::string> words(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> found;
  for (std::string word; in >> word;) found.push_back(word);
  return found;
}

TEST(TableRow, HasTheColumnsOfNcclTestsTheAlgorithmAndTheTransport) {
  EXPECT_EQ(table_row(all_reduce_row(), options()),
            "     1048576        262144     float     sum      -1"
            "   1000.0    1.05    1.84      0"
            "    500.0    2.10    3.67      3  ring  shm+tcp\n");
}

TEST(TableRow, KeepsTimesInSevenCharacters) {
  Row row = all_reduce_row();
  row.out_of_place = cell(5'432, 0);
  row.in_place = cell(123'456'789, 0);
  const auto found = words(table_row(row, options()));
  EXPECT_EQ(found[5], "5.43");
  EXPECT_EQ(found[9], "123457");
}

TEST(TableRow, ShowsMissingResultsAsNotAvailable) {
  Row row = all_reduce_row();
  row.out_of_place.wrong.reset();
  row.in_place.reset();
  const auto found = words(table_row(row, options()));
  ASSERT_EQ(found.size(), 15U);
  EXPECT_EQ(found[8], "N/A");
  for (int column = 9; column <= 12; ++column)
    EXPECT_EQ(found[static_cast<std::size_t>(column)], "N/A");
}

TEST(TableRow, AddsOverlapOnlyInComments) {
  Row row = all_reduce_row();
  row.in_place->overlap = Overlap{50, 10'000, 9'500, 12'000, 75};
  const std::string lines = table_row(row, options());
  expect_parts(lines, {"\n#   overlap in-place     communication 10.00 computation 9.50 overall "
                       "12.00 us: 75.0 % hidden (50 calls)\n"});
}

TEST(TableRow, AddsTheMessageRate) {
  Row row = all_reduce_row();
  row.collective = find_collective("message_rate");
  row.in_place.reset();
  row.out_of_place = cell(500, 0);  // 4 senders
  EXPECT_NE(
      table_row(row, options()).find("\n#   message rate 8000000 messages/s from 4 senders\n"),
      std::string::npos)
      << table_row(row, options());
}

TEST(TableRow, AddsLatencyOnlyInComments) {
  Row row = all_reduce_row();
  row.out_of_place.latency = Latency{100, {1000, 2000, 1500, 3000, 4000, 5000}, 6};
  row.in_place->latency = row.out_of_place.latency;
  Options with_latency = options();
  with_latency.latency = true;
  std::istringstream lines(table_row(row, with_latency));
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(line + "\n", table_row(row, options()));
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(line,
            "#   latency out-of-place min 1.00 p50 1.50 p95 3.00 p99 4.00 max 5.00 us (100 calls, "
            "slowest rank 6)");
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(line[0], '#');
  EXPECT_FALSE(std::getline(lines, line));
}

TEST(TableHeader, ConsistsOfCommentsAndNamesEveryRank) {
  RankFacts rank{.rank = 3, .pid = 4242, .module_id = 5};
  std::strcpy(rank.host, "somewhere");
  std::strcpy(rank.device, "GAUDI2");
  const std::string header = table_header(options(), 2604, {rank});
  std::istringstream lines(header);
  for (std::string line; std::getline(lines, line);) EXPECT_EQ(line[0], '#') << line;
  expect_parts(header,
               {"# Using devices\n#  Rank  3 Group  0 Pid   4242 on  somewhere device  5 GAUDI2\n",
                "out-of-place                       in-place", "#wrong"});
}

TEST(TableFooter, SumsUpWrongElementsAndAveragesBusBandwidth) {
  Totals totals;
  EXPECT_EQ(table_footer(totals),
            "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 0 \n#\n");
  totals.add(all_reduce_row(), Averaging::average);
  EXPECT_EQ(totals.wrong(), 3U);
  EXPECT_NEAR(totals.average_bus_bandwidth(), (1.048576 + 2.097152) * 1.75 / 2, 1e-9);
  EXPECT_EQ(table_footer(totals),
            "# Out of bounds values : 3 FAILED\n# Avg bus bandwidth    : 2.75251 \n#\n");
}

}  // namespace
}  // namespace hccl_perf
