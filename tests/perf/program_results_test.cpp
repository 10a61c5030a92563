// SPDX-License-Identifier: Apache-2.0
// Tests hccl-perf's result files, the comparison with an earlier run, and the options of hccl_demo,
// end to end.
#include "run_program.h"
#include "text.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace hccl_perf {
namespace {

namespace fs = std::filesystem;
using Words = CommandLine;

class HcclPerfResults : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::path(testing::TempDir()) / ("hccl-perf-results." + std::to_string(getpid()));
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  [[nodiscard]] std::string path(const char* name) const { return (directory_ / name).string(); }

  [[nodiscard]] static std::vector<std::string> lines(const std::string& path) {
    std::ifstream file(path);
    std::vector<std::string> all;
    for (std::string line; std::getline(file, line);) all.push_back(line);
    return all;
  }

  // Runs two sizes and writes a JSON file in which each timed pass took `factor` times the median.
  void record_baseline(double factor) {
    Words arguments = run_;
    arguments.append({"--json", path("base.json")});
    ASSERT_EQ(run_hccl_perf(arguments).status, 0);
    auto json = nlohmann::json::parse(std::ifstream(path("base.json")));
    for (auto& row : json["rows"]) {
      for (const char* placement : {"out_of_place", "in_place"}) {
        for (auto& sample : row[placement]["samples_ns"])
          sample = row[placement]["time_ns"].get<double>() * factor;
      }
    }
    std::ofstream(path("base.json")) << json;
  }
  [[nodiscard]] Outcome compare(const Words& more = {}) const {
    Words arguments = run_;
    arguments.append({"--compare", path("base.json")});
    arguments.append(more);
    return run_hccl_perf(arguments);
  }

  const Words run_{"all_reduce", "-g", "2", "-b", "1K", "-e", "4K", "-f", "4", "-n", "5"};
  fs::path directory_;
};

TEST_F(HcclPerfResults, AreWrittenAsCsvForEveryTypeReductionAndRoot) {
  const Outcome outcome = run_hccl_perf(
      text("reduce -g 2 -b 1K -e 4K -f 4 -n 2 -r all -d all -o all --csv ", path("out.csv")));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const auto written = lines(path("out.csv"));
  ASSERT_EQ(written.size(), 1U + 2 * table_rows(outcome.out).size());
  EXPECT_EQ(table_rows(outcome.out).size(), 10U * 5 * 2 * 2);
  const auto columns = std::count(written[0].begin(), written[0].end(), ',');
  for (const std::string& line : written)
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), columns) << line;
  EXPECT_EQ(written[2].rfind("reduce,2,1024,1024,int8,sum,0,node,memory,in_place,2,", 0), 0U)
      << written[2];
}

TEST_F(HcclPerfResults, IncludeEveryCallOnEveryRank) {
  const Outcome outcome = run_hccl_perf(text(
      "all_reduce -g 3 -b 1K -e 4K -f 4 -n 6 --latency-iters 10 -N 2 --raw ", path("raw.csv")));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const auto written = lines(path("raw.csv"));
  ASSERT_FALSE(written.empty());
  EXPECT_EQ(written[0],
            "collective,ranks,size_bytes,count,type,redop,root,cycle,placement,pass,rank,call,"
            "time_ns");
  std::map<std::string, int> calls;
  for (std::size_t i = 1; i < written.size(); ++i) {
    const std::size_t time = written[i].rfind(',');
    const std::size_t call = written[i].rfind(',', time - 1);
    EXPECT_GT(std::stod(written[i].substr(time + 1)), 0.0) << written[i];
    const std::string cell = written[i].substr(0, call);
    EXPECT_EQ(std::stoi(written[i].substr(call + 1)), calls[cell]++) << "calls are numbered";
  }
  EXPECT_EQ(calls.size(), 2U * 2 * 2 * 2 * 3) << "cycles, sizes, placements, passes, ranks";
  for (const char* rank : {"0", "1", "2"}) {
    const std::string cell = "all_reduce,3,4096,1024,float,sum,-1,1,in_place,";
    EXPECT_EQ(calls[cell + "queued," + rank], 6);
    EXPECT_EQ(calls[cell + "single," + rank], 10);
  }
}

TEST_F(HcclPerfResults, IncludeEveryTimedPass) {
  const Outcome outcome = run_hccl_perf(
      text("broadcast -g 2 -b 1K -e 4K -f 4 -n 2 --repeats 6 --json ", path("out.json")));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(table_rows(outcome.out).size(), 2U);
  const auto json = nlohmann::json::parse(std::ifstream(path("out.json")));
  ASSERT_EQ(json["rows"].size(), 2U);
  for (const auto& row : json["rows"]) {
    auto samples = row["out_of_place"]["samples_ns"].get<std::vector<double>>();
    ASSERT_EQ(samples.size(), 6U);
    std::sort(samples.begin(), samples.end());
    EXPECT_EQ(row["out_of_place"]["time_ns"], samples[2]) << "the lower median";
  }
}

TEST_F(HcclPerfResults, ComparedWithAMuchSlowerRunAreFaster) {
  record_baseline(1e6);
  const Outcome outcome = compare();
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(table_rows(outcome.out).size(), 2U) << "the comparison is printed as comments";
  expect_parts(outcome.out, {"# Compared            : 0 slower, 4 faster, 0 same, 0 noise\n"});
}

TEST_F(HcclPerfResults, ComparedWithAMuchFasterRunAreSlowerAndSetTheExitStatus) {
  record_baseline(1e-6);
  // With 25 passes, the noise stays below the time of one pass, even while other tests run.
  const Outcome outcome = compare({"--repeats", "25"});
  EXPECT_EQ(outcome.status, 3) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.err, "");
  expect_parts(outcome.out, {"  slower\n"});
}

TEST_F(HcclPerfResults, WrongDataOutranksASlowRun) {
  record_baseline(1e-6);
  // All ranks are in one process, so that the launcher does not combine the exit statuses of
  // several processes.
  const Outcome outcome = run_hccl_perf(
      text("all_reduce -t 2 -b 1K -e 4K -f 4 -n 5 --repeats 25 --compare ", path("base.json")),
      {std::string("LD_PRELOAD=") + HCCL_PERF_FAULTS, "PERF_TEST_FAULT=short"});
  EXPECT_EQ(outcome.status, 1) << outcome.out << outcome.err;
  expect_parts(outcome.out, {"  slower\n"});
}

TEST_F(HcclPerfResults, AreNotMeasuredWithoutAUsableBaseline) {
  const auto expect_refused = [&](const Words& more, const std::string& named) {
    const Outcome outcome = compare(more);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.out, "");
    expect_line(outcome.err, {named});
  };
  expect_refused({}, "No such file");
  std::ofstream(path("base.json")) << "{";
  expect_refused({}, "invalid JSON");
  record_baseline(1);
  expect_refused({"-t", "2"}, "with 2 ranks, but this run uses 4");
  expect_refused({"-d", "int8"}, "no cell in common");
  expect_refused({"--csv", "/nonexistent/out.csv"}, "--csv: cannot write");
  expect_refused({"--raw", "/nonexistent/out.csv"}, "--raw: cannot write");
}

TEST_F(HcclPerfResults, AreRightInEveryBlockingMode) {
  for (const char* blocking : {"0", "1", "2", "3"}) {
    const Outcome outcome = run_hccl_perf(
        text("all_reduce -g 3 -b 8 -e 64K -f 16 -n 4 -z ", blocking, " --json ", path("out.json")));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    const auto json = nlohmann::json::parse(std::ifstream(path("out.json")));
    EXPECT_EQ(json["options"]["blocking"], std::stoi(blocking));
    EXPECT_EQ(json["wrong"], 0);
  }
}

TEST_F(HcclPerfResults, FollowTheOptionsOfHcclDemo) {
  const Outcome outcome = run_hccl_perf(
      text("--test all2all --nranks 4 --node_id 0 --ranks_per_node 4 --loop 3 --data_type bfloat16 "
           "--size_range 1k 4K --measure latency --timeout 1m --result_csv ",
           path("out.csv")));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const auto rows = table_rows(outcome.out);
  ASSERT_EQ(rows.size(), 3U) << outcome.out;
  EXPECT_EQ(rows[2][0], "4096");
  EXPECT_EQ(rows[2][2], "bfloat16");
  expect_parts(outcome.out, {"#   latency out-of-place min "});
  EXPECT_EQ(lines(path("out.csv")).size(), 7U);
}

}  // namespace
}  // namespace hccl_perf
