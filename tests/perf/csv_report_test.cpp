// SPDX-License-Identifier: Apache-2.0
// The CSV file: a line for each row of the table and placement.
#include "csv_report.h"

#include "sample_results.h"

#include <map>
#include <sstream>

namespace hccl_perf {
namespace {

// The fields by column, of files whose fields hold no commas.
std::vector<std::map<std::string, std::string>> parsed(const std::string& csv) {
  std::istringstream lines(csv);
  std::vector<std::string> names;
  std::vector<std::map<std::string, std::string>> rows;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line + ",");
    std::vector<std::string> values;
    for (std::string field; std::getline(fields, field, ',');) values.push_back(field);
    if (names.empty()) {
      names = values;
      continue;
    }
    EXPECT_EQ(values.size(), names.size()) << line;
    std::map<std::string, std::string> row;
    for (std::size_t i = 0; i < std::min(values.size(), names.size()); ++i)
      row[names[i]] = values[i];
    rows.push_back(row);
  }
  return rows;
}

TEST(CsvReport, HasALineForEachPlacementWithTheNamesOfTheJsonFile) {
  const Options options = sample_options("all_reduce");
  Row row = sample_row("all_reduce", 4096, {2000});
  row.out_of_place.nanoseconds = across_ranks({1000.0, 2000.0, 4000.0, 1000.0});
  row.out_of_place.wrong = 7;
  row.in_place->overlap = Overlap{50, 10'000, 9'500, 12'000, 75};
  row.in_place->latency = Latency{10, {1, 2, 3, 4, 5, 6}, 2};
  const auto rows =
      parsed(csv_text(sample_results(options, {row, sample_row("all_reduce", 8, {9})})));
  ASSERT_EQ(rows.size(), 4U);
  const auto& first = rows[0];
  EXPECT_EQ(first.at("collective"), "all_reduce");
  EXPECT_EQ(first.at("ranks"), "4");
  EXPECT_EQ(first.at("size_bytes"), "4096");
  EXPECT_EQ(first.at("count"), "2048");
  EXPECT_EQ(first.at("type"), "bfloat16");
  EXPECT_EQ(first.at("redop"), "max");
  EXPECT_EQ(first.at("root"), "-1");
  EXPECT_EQ(first.at("algorithm"), "node");
  EXPECT_EQ(first.at("transport"), "memory");
  EXPECT_EQ(first.at("placement"), "out_of_place");
  EXPECT_EQ(first.at("iterations"), "20");
  EXPECT_EQ(first.at("time_ns"), "2000.0");
  EXPECT_EQ(first.at("algbw_gb_per_s"), "2.048000");
  EXPECT_EQ(first.at("busbw_gb_per_s"), "3.072000");
  EXPECT_EQ(first.at("wrong"), "7");
  EXPECT_EQ(first.at("time_ns_across_ranks_max"), "4000.0");
  EXPECT_EQ(first.at("time_ns_across_ranks_slowest_rank"), "2");
  EXPECT_EQ(first.at("latency_ns_p99"), "") << "not measured";
  EXPECT_EQ(rows[1].at("placement"), "in_place");
  EXPECT_EQ(rows[1].at("wrong"), "0");
  EXPECT_EQ(rows[1].at("latency_ns_p99"), "5.0");
  EXPECT_EQ(rows[1].at("overlap_percent"), "75.0");
  EXPECT_EQ(rows[1].at("overlap_overall_ns"), "12000.0");
  EXPECT_EQ(first.at("overlap_percent"), "") << "not measured";
  EXPECT_EQ(first.at("messages_per_s"), "") << "not a test of messages";
  EXPECT_EQ(rows[1].at("latency_ns_slowest_rank"), "2");
  EXPECT_EQ(rows[2].at("size_bytes"), "8");
}

TEST(CsvReport, LeavesOutWhatCannotBeInPlaceAndWhatWasNotChecked) {
  const Options options = sample_options("sendrecv");
  Row row = sample_row("sendrecv", 4096, {2000});
  row.in_place.reset();
  row.out_of_place.wrong.reset();
  const auto rows = parsed(csv_text(sample_results(options, {row})));
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].at("wrong"), "");
}

TEST(CsvReport, QuotesFieldsThatNeedIt) {
  const Options options = sample_options("all_reduce");
  Row row = sample_row("all_reduce", 4096, {2000});
  row.out_of_place.traffic = {sample_traffic(R"(ring, "two" trees)", "tcp")};
  EXPECT_NE(
      csv_text(sample_results(options, {row})).find(R"(,"ring, ""two"" trees",tcp,out_of_place)"),
      std::string::npos);
}

TEST(CsvReport, IsTheSameInEveryLocale) {
  const Options options = sample_options("all_reduce");
  const Results results = sample_results(options, {sample_row("all_reduce", 1 << 20, {123456.7})});
  const std::string before = csv_text(results);
  EXPECT_NE(before.find("1048576,524288"), std::string::npos) << before;
  const CommaLocale commas;
  EXPECT_EQ(csv_text(results), before);
}

}  // namespace
}  // namespace hccl_perf
