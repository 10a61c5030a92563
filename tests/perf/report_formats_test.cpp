// SPDX-License-Identifier: Apache-2.0
// Tests the formats of result files: CSV, JSON and raw times.

#include "report_formats.h"

#include "sample_results.h"

#include <map>
#include <sstream>

#include <nlohmann/json.hpp>

namespace hccl_perf {
namespace {

// Tests the CSV file, which has a line for each table row and placement.

using Fields = std::map<std::string, std::string>;

// Returns the fields of each row by column. Fields must not contain commas.
std::vector<Fields> parsed(const std::string& csv) {
  std::istringstream lines(csv);
  std::vector<std::string> names;
  std::vector<Fields> rows;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line + ",");
    std::vector<std::string> values;
    for (std::string field; std::getline(fields, field, ',');) values.push_back(field);
    if (names.empty()) {
      names = values;
      continue;
    }
    EXPECT_EQ(values.size(), names.size()) << line;
    Fields row;
    for (std::size_t i = 0; i < std::min(values.size(), names.size()); ++i)
      row[names[i]] = values[i];
    rows.push_back(row);
  }
  return rows;
}

// Requires that the row has these fields, given as "column=value" words.
void expect_fields(const Fields& row, const std::string& expected) {
  std::istringstream words(expected + ' ');
  std::string value;
  for (std::string column; std::getline(words, column, '=') && std::getline(words, value, ' ');)
    EXPECT_EQ(row.at(column), value) << column;
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
  expect_fields(rows[0],
                "collective=all_reduce ranks=4 size_bytes=4096 count=2048 type=bfloat16 "
                "redop=max root=-1 algorithm=node transport=memory placement=out_of_place "
                "iterations=20 time_ns=2000.0 algbw_gb_per_s=2.048000 "
                "busbw_gb_per_s=3.072000 wrong=7 time_ns_across_ranks_max=4000.0 "
                "time_ns_across_ranks_slowest_rank=2");
  // These values were not measured, or exist only for message_rate.
  expect_fields(rows[0], "latency_ns_p99= overlap_percent= messages_per_s=");
  expect_fields(rows[1],
                "placement=in_place wrong=0 latency_ns_p99=5.0 overlap_percent=75.0 "
                "overlap_overall_ns=12000.0 latency_ns_slowest_rank=2");
  EXPECT_EQ(rows[2].at("size_bytes"), "8");
}

TEST(CsvReport, OmitsImpossiblePlacementsAndUncheckedResults) {
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

// Tests the JSON file.

// Requires that `json` has the values in `expected`, a JSON object.
void expect_values(const nlohmann::json& json, const char* expected) {
  nlohmann::json merged = json;
  merged.merge_patch(nlohmann::json::parse(expected));
  EXPECT_EQ(merged, json);
}

nlohmann::json sample() {
  Options options = sample_options("reduce_scatter");
  options.blocking = Blocking::wait;
  Row row = sample_row("reduce_scatter", 4096, {3000.04, 1000, 2000});
  row.out_of_place.nanoseconds = across_ranks({1000.0, 2000.0, 4000.0, 1000.0});
  row.out_of_place.wrong = 5;
  row.out_of_place.latency = Latency{10, {1, 2, 3, 4, 5, 6}, 2};
  row.in_place->wrong.reset();
  return nlohmann::json::parse(json_text(sample_results(options, {row})));
}

TEST(JsonReport, RecordsWhatRanWhereAndWhen) {
  const auto json = sample();
  expect_values(json, R"({"collective": "reduce_scatter", "ranks": 4, "wrong": 5,
    "started": "2026-02-02T02:40:00Z", "host": {"cores": 16, "kernel": "Linux"},
    "options": {"iterations": 20, "blocking": 2}})");
  EXPECT_EQ(json["devices"].size(), 4U);
}

TEST(JsonReport, RecordsWhatRanWhereAndHow) {
  Options options = sample_options("all_reduce");
  options.command_line = {"hccl-perf", "all_reduce", "-g", "4"};
  Results results = sample_results(options, {});
  auto json = nlohmann::json::parse(json_text(results));
  EXPECT_EQ(json["argv"], options.command_line);
  EXPECT_EQ(json["environment"], (nlohmann::json{{"HCCL_ALGO", "ring"}}));
  expect_values(json, R"({"hccl_library": 2604, "library_release": "1.0",
    "library_path": "/lib/libSynapse.so"})");
  EXPECT_EQ(json["host"]["memory_bytes"], 8ULL << 30);
  EXPECT_EQ(json["host"]["cgroup_cpus"], 2.5);
  EXPECT_EQ(json["host"]["cgroup_memory_bytes"], 4ULL << 30);
  results.host.limits = {};
  json = nlohmann::json::parse(json_text(results));
  EXPECT_TRUE(json["host"]["cgroup_cpus"].is_null());
  EXPECT_TRUE(json["host"]["cgroup_memory_bytes"].is_null());
}

TEST(JsonReport, IncludesOverlapAndMessageRate) {
  const Options options = sample_options("message_rate");
  Row row = sample_row("message_rate", 8, {500});
  row.out_of_place.overlap = Overlap{50, 10'000, 9'500, 12'000, 75};
  const auto cells = nlohmann::json::parse(json_text(sample_results(options, {row})))["rows"][0];
  EXPECT_EQ(cells["out_of_place"]["messages_per_s"], 4e6) << "2 senders, 500 ns a message";
  EXPECT_EQ(cells["out_of_place"]["overlap"], (nlohmann::json{{"iterations", 50},
                                                              {"communication_ns", 10'000.0},
                                                              {"computation_ns", 9'500.0},
                                                              {"overall_ns", 12'000.0},
                                                              {"percent", 75.0}}));
  EXPECT_FALSE(cells["in_place"].contains("overlap"));
}

TEST(JsonReport, NamesTheNodesOfRanks) {
  const Options options = sample_options("all_reduce");
  Results results = sample_results(options, {});
  std::strcpy(results.ranks[1].node, "node1");
  const auto json = nlohmann::json::parse(json_text(results));
  EXPECT_TRUE(json["devices"][0]["node"].is_null());
  EXPECT_EQ(json["devices"][1]["node"], "node1");
}

TEST(JsonReport, RecordsTimesInNanoseconds) {
  const auto json = sample();
  ASSERT_EQ(json["rows"].size(), 1U);
  const auto& found = json["rows"][0];
  expect_values(found, R"({"size_bytes": 4096, "count": 512, "type": "bfloat16", "redop": "max",
    "algorithm": "node", "transport": "memory"})");
  const auto& cell = found["out_of_place"];
  expect_values(cell, R"({"iterations": 20, "time_ns": 2000.0,
    "time_ns_across_ranks": {"max": 4000.0, "slowest_rank": 2}})");
  EXPECT_NEAR(cell["busbw_gb_per_s"], 4096.0 / 2000.0 * 0.75, 1e-9);
  EXPECT_EQ(cell["samples_ns"], (std::vector<double>{3000.0, 1000.0, 2000.0}));
  EXPECT_EQ(cell["latency_ns"]["p99"], 5.0);
  EXPECT_EQ(cell["wrong"], 5);
  EXPECT_TRUE(found["in_place"]["wrong"].is_null());
}

TEST(JsonReport, RecordsHowTheElementsAgree) {
  const Options options = sample_options("all_reduce");
  Row row = sample_row("all_reduce", 4096, {1000});
  row.in_place->rounded = 1;
  const auto cells = [&] {
    return nlohmann::json::parse(json_text(sample_results(options, {row})))["rows"][0];
  };
  EXPECT_EQ(cells()["out_of_place"]["check"], "bitwise");
  EXPECT_EQ(cells()["in_place"]["check"], "within rounding");
  row.out_of_place.wrong.reset();
  row.in_place->wrong = 1;
  EXPECT_TRUE(cells()["out_of_place"]["check"].is_null());
  EXPECT_TRUE(cells()["in_place"]["check"].is_null());
}

TEST(JsonReport, RecordsWhatACallMovesPerRank) {
  const Options options = sample_options("all_reduce");
  Row row = sample_row("all_reduce", 4096, {1000});
  Traffic& one = row.out_of_place.traffic[2];
  one.bytes_sent = std::uint64_t{20} * 6144;
  one.receives = 30;
  one.peers = 2;
  const auto cells =
      nlohmann::json::parse(json_text(sample_results(options, {row})))["rows"][0]["out_of_place"];
  const auto& by_rank = cells["traffic_per_call_by_rank"];
  ASSERT_EQ(by_rank.size(), 4U);
  EXPECT_EQ(by_rank[2]["bytes_sent"], 6144);
  EXPECT_EQ(by_rank[2]["receives"], 1.5);
  EXPECT_EQ(by_rank[2]["peers"], 2);
  EXPECT_EQ(by_rank[3]["bytes_sent"], 0);
}

TEST(JsonReport, IsTheSameInEveryLocale) {
  const auto before = sample();
  const CommaLocale commas;
  EXPECT_EQ(sample(), before);
}

// Tests the file of raw times.

TEST(RawReport, HasALineForEachCallAndRank) {
  Options options = sample_options("all_reduce");
  options.min_bytes = options.max_bytes = 4096;
  options.cycles = 2;
  Row row = sample_row("all_reduce", 4096, {1000});
  row.out_of_place.raw.queued = {{10, 11}, {20, 21}};
  row.in_place->raw.single = {{30}, {40.25}};
  const std::string before = "all_reduce,4,4096,2048,bfloat16,max,-1,";
  const std::string lines =
      "collective,ranks,size_bytes,count,type,redop,root,cycle,placement,"
      "pass,rank,call,time_ns\n" +
      before + "0,out_of_place,queued,0,0,10.0\n" + before + "0,out_of_place,queued,0,1,11.0\n" +
      before + "0,out_of_place,queued,1,0,20.0\n" + before + "0,out_of_place,queued,1,1,21.0\n" +
      before + "0,in_place,single,0,0,30.0\n" + before + "0,in_place,single,1,0,40.2\n";
  Results results = sample_results(options, {row});
  EXPECT_EQ(raw_text(results), lines);
  const CommaLocale commas;
  EXPECT_EQ(raw_text(results), lines) << "in every locale";
  results.rows.push_back(sample_row("all_reduce", 4096, {1000}));
  results.rows.back().in_place->raw.queued = {{50}};
  EXPECT_NE(raw_text(results).find(before + "1,in_place,queued,0,0,50.0\n"), std::string::npos)
      << "the second cycle";
}

}  // namespace
}  // namespace hccl_perf
