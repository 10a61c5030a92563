// SPDX-License-Identifier: Apache-2.0
// Tests hccl-perf end to end: its tables, files and exit statuses must be right.
#include "collective.h"
#include "run_program.h"
#include "text.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace hccl_perf {
namespace {

namespace fs = std::filesystem;
using Words = CommandLine;

// Requires that the program succeeded and that the #wrong columns of every row are 0. For a
// collective without an in-place form, the in-place column must be N/A.
void expect_all_right(const Outcome& outcome, std::size_t rows) {
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const auto found = table_rows(outcome.out);
  ASSERT_EQ(found.size(), rows) << outcome.out;
  bool in_place = true;
  for (const char* name : {"sendrecv_perf", "pingpong", "bidirectional", "message_rate"})
    in_place = in_place && outcome.out.find(name) == std::string::npos;
  for (const auto& row : found) {
    ASSERT_EQ(row.size(), 15U) << outcome.out;
    EXPECT_EQ(row[8], "0");
    EXPECT_EQ(row[12], in_place ? "0" : "N/A");
    EXPECT_FALSE(row[13].empty());
  }
  expect_parts(outcome.out, {"# Out of bounds values : 0 OK\n", "# Avg bus bandwidth    : "});
}

// Runs hccl-perf and returns the contents of its JSON file.
nlohmann::json json_of_run(Words arguments, const Program::Variables& variables = {}) {
  const std::string file = testing::TempDir() + "hccl-perf-json." + std::to_string(getpid());
  arguments.append({"--json", file});
  const Outcome outcome = run_hccl_perf(arguments, variables);
  EXPECT_EQ(outcome.status, 0) << outcome.err << outcome.out;
  auto json = nlohmann::json::parse(std::ifstream(file));
  std::filesystem::remove(file);
  return json;
}

class EachCollective : public testing::TestWithParam<const char*> {};

TEST_P(EachCollective, IsRightForManySizes) {
  const Outcome outcome =
      run_hccl_perf({GetParam(), "-g", "4", "-b", "8", "-e", "1M", "-f", "8", "-n", "3"});
  expect_all_right(outcome, 6);
}

TEST_P(EachCollective, IsRightForEveryTypeReductionAndRoot) {
  const Outcome outcome =
      run_hccl_perf(text(GetParam(), " -g 3 -b 10007 -e 10007 -d all -o all -r all -n 2"));
  const hccl_perf::Collective& collective = *hccl_perf::find_collective(GetParam());
  expect_all_right(outcome, hccl_perf::kDataTypes.size() *
                                (collective.reduces ? hccl_perf::kReductions.size() : 1) *
                                (collective.has_root ? 3 : 1));
}

TEST_P(EachCollective, IsRightOnOneRank) {
  expect_all_right(
      run_hccl_perf({GetParam(), "-b", "4K", "-e", "64K", "-f", "4", "-n", "2", "-c", "2"}), 3);
}

TEST_P(EachCollective, HasALinkWithItsNcclTestsName) {
  const std::string path = program_path(std::string(GetParam()) + "_perf");
  expect_all_right(Program({path, "-g", "2", "-b", "64K", "-e", "64K", "-n", "2"}).wait(), 1);
}

INSTANTIATE_TEST_SUITE_P(HcclPerf, EachCollective,
                         testing::Values("all_reduce", "broadcast", "all_gather", "reduce_scatter",
                                         "reduce", "alltoall", "sendrecv"),
                         [](const auto& parameter) { return std::string(parameter.param); });

class EachTestOfPairs : public testing::TestWithParam<const char*> {};

TEST_P(EachTestOfPairs, IsRightForManySizesAndPairs) {
  for (const char* ranks : {"2", "4"}) {
    expect_all_right(
        run_hccl_perf(text(GetParam(), " -g ", ranks, " -b 8 -e 32K -f 8 -n 3 --latency")), 5);
  }
}

TEST_P(EachTestOfPairs, IsRightForEveryType) {
  expect_all_right(run_hccl_perf({GetParam(), "-g", "2", "-b", "1003", "-e", "1003", "-d", "all"}),
                   kDataTypes.size());
}

TEST_P(EachTestOfPairs, IsRightBetweenNodes) {
  const Outcome outcome =
      run_hccl_perf({GetParam(), "-g", "4", "--nodes", "2", "-b", "8", "-e", "8K", "-f", "32"});
  expect_all_right(outcome, 3);
}

TEST_P(EachTestOfPairs, RefusesAnOddNumberOfRanks) {
  for (const char* ranks : {"1", "3"}) {
    const Outcome outcome = run_hccl_perf({GetParam(), "-g", ranks});
    EXPECT_EQ(outcome.status, 2);
    expect_parts(outcome.err, {"needs an even number of ranks"});
  }
}

INSTANTIATE_TEST_SUITE_P(HcclPerf, EachTestOfPairs,
                         testing::Values("pingpong", "bidirectional", "message_rate"),
                         [](const auto& parameter) { return std::string(parameter.param); });

TEST(HcclPerf, MeasuresOverlap) {
  const fs::path file =
      fs::path(testing::TempDir()) / ("hccl-perf-overlap." + std::to_string(getpid()));
  const Outcome outcome = run_hccl_perf(
      text("all_reduce -g 2 -b 64K -e 64K --overlap --latency-iters 20 --repeats 1 --json ",
           file.string()));
  expect_all_right(outcome, 1);
  const auto json = nlohmann::json::parse(std::ifstream(file));
  fs::remove(file);
  for (const char* placement : {"out_of_place", "in_place"}) {
    const auto& overlap = json["rows"][0][placement]["overlap"];
    EXPECT_EQ(overlap["iterations"], 20);
    EXPECT_GT(overlap["communication_ns"].get<double>(), 0.0);
    EXPECT_GT(overlap["computation_ns"].get<double>(), 0.0);
    EXPECT_GE(overlap["overall_ns"].get<double>(), 0.0);
    EXPECT_GE(overlap["percent"].get<double>(), 0.0);
    EXPECT_LE(overlap["percent"].get<double>(), 100.0);
  }
}

TEST(HcclPerf, NamesEveryRankInTheHeader) {
  const Outcome outcome = run_hccl_perf({"all_reduce", "-g", "3", "-b", "8", "-e", "8", "-n", "1"});
  expect_parts(outcome.out, {"#  Rank  0 ", "#  Rank  1 ", "#  Rank  2 "});
}

TEST(HcclPerf, RunsRanksAsThreads) {
#if defined(__SANITIZE_THREAD__)
  // ThreadSanitizer sees only one process: it reports false races between threads that synchronise
  // through another process.
  const char* const processes = "1";
#else
  const char* const processes = "2";
#endif
  expect_all_right(run_hccl_perf(text("all_reduce -g ", processes, " -t 2 -b 1K -e 16K -f 4 -n 2")),
                   3);
  expect_all_right(
      run_hccl_perf({"reduce_scatter", "-t", "3", "-b", "64K", "-e", "64K", "-n", "2"}), 1);
}

TEST(HcclPerf, SimulatesNodes) {
  const Outcome outcome = run_hccl_perf(
      {"all_reduce", "-g", "3", "--nodes", "2", "-b", "1K", "-e", "16K", "-f", "4", "-n", "2"});
  expect_all_right(outcome, 3);
  expect_parts(outcome.out, {"# Nodes (HCCL_NODE_ID): ranks 0,1 on node0; rank 2 on node1\n"});
  for (const auto& row : table_rows(outcome.out)) EXPECT_EQ(row[14], "shm+tcp") << outcome.out;
}

TEST(HcclPerf, MeasuresABarrier) {
  const Outcome outcome = run_hccl_perf({"barrier", "-g", "3", "-n", "5"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const auto rows = table_rows(outcome.out);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0][0], "0");
  EXPECT_EQ(rows[0][8], "N/A");
}

TEST(HcclPerf, RepeatsTheSweepAndChecksOnDemand) {
  const Outcome outcome = run_hccl_perf(
      {"all_reduce", "-g", "2", "-b", "1K", "-e", "2K", "-f", "2", "-N", "2", "-c", "0"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const auto rows = table_rows(outcome.out);
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[0][8], "N/A");
}

TEST(HcclPerf, ShowsLatencyInComments) {
  const Outcome outcome = run_hccl_perf(
      {"all_reduce", "-g", "2", "-b", "8", "-e", "8", "--latency", "--latency-iters", "30"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(table_rows(outcome.out).size(), 1U);
  expect_parts(outcome.out, {"#   latency out-of-place min ", "(30 calls"});
}

TEST(HcclPerf, RunsUntilTheMinimumTime) {
  const auto json = json_of_run(text("all_reduce -g 2 -b 8 -e 8 -n 1 --min-time 0.05 --repeats 1"));
  const auto& cell = json["rows"][0]["out_of_place"];
  EXPECT_GE(cell["iterations"].get<double>() * cell["time_ns_across_ranks"]["max"].get<double>(),
            0.05e9 * 0.99);
}

TEST(HcclPerf, WritesJson) {
  const auto json = json_of_run(text("all_gather -g 2 -b 1K -e 4K -f 4 -n 2"),
                                {"HCCL_TIMEOUT=100", "HCCL_SECRET=whisper"});
  EXPECT_EQ(json["collective"], "all_gather");
  EXPECT_EQ(json["ranks"], 2);
  EXPECT_EQ(json["argv"][1], "all_gather");
  EXPECT_EQ(json["environment"]["HCCL_TIMEOUT"], "100");
  EXPECT_EQ(json["environment"]["HCCL_SECRET"], "(set)");
  EXPECT_NE(json["library_path"].get<std::string>().find("libSynapse.so"), std::string::npos);
  ASSERT_EQ(json["rows"].size(), 2U);
  EXPECT_EQ(json["rows"][1]["size_bytes"], 4096);
  EXPECT_EQ(json["rows"][1]["in_place"]["wrong"], 0);
  EXPECT_EQ(json["rows"][1]["in_place"]["check"], "bitwise");
  EXPECT_GT(json["rows"][1]["in_place"]["latency_ns"]["p95"].get<double>(), 0.0);
}

// Requires one line on stderr that contains `named`, an empty stdout, and status 2.
void expect_usage_error(const Words& arguments, const std::string& named) {
  const Outcome outcome = run_hccl_perf(arguments);
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err.rfind("hccl-perf: ", 0), 0U) << outcome.err;
  expect_line(outcome.err, {named});
}

TEST(HcclPerf, RefusesBadArgumentsInOneLine) {
  expect_usage_error({"all_reduce", "-D", "4"}, "-D");
  expect_usage_error({"all_reduce", "-b", "x"}, "'x'");
  expect_usage_error({"broadcast", "-g", "2", "-r", "2"}, "-r 2");
  expect_usage_error({"all_reduce", "-g", "2", "-t", "40"}, "80 ranks");
  expect_usage_error({"all_reduce", "-g", "2", "-e", "64T", "-f", "2"}, "-e");
  expect_usage_error({"all_reduce", "-g", "2", "--nodes", "3"}, "--nodes 3");
  expect_usage_error({"all_reduce", "--json", "/nonexistent/out.json"}, "/nonexistent/out.json");
}

TEST(HcclPerf, RefusesNodesIfTheUserNamedThem) {
  const Outcome outcome =
      run_hccl_perf({"all_reduce", "-g", "2", "--nodes", "2"}, {"HCCL_NODE_ID=mine"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.out, "");
  expect_parts(outcome.err, {"already set to 'mine'"});
}

TEST(HcclPerf, ShowsHelp) {
  const Outcome outcome = run_hccl_perf({"--help"});
  EXPECT_EQ(outcome.status, 0);
  expect_parts(outcome.out, {"Examples:"});
}

}  // namespace
}  // namespace hccl_perf
