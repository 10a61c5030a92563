// SPDX-License-Identifier: Apache-2.0
// The JSON file: its contents, and that it appears whole or not at all.
#include "json_report.h"

#include "text.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace hccl_perf {
namespace {

namespace fs = std::filesystem;

class JsonFile : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::path(testing::TempDir()) / text("hccl-perf-json.", getpid());
    fs::create_directories(directory_);
    options_.collective = find_collective("reduce_scatter");
    options_.types = {kDataTypes[hcclBfloat16]};
    options_.reductions = {kReductions[hcclMax]};
    options_.json_path = (directory_ / "out.json").string();
  }
  void TearDown() override { fs::remove_all(directory_); }

  [[nodiscard]] Row row() const {
    Row made;
    made.collective = options_.collective;
    made.ranks = 4;
    made.type = kDataTypes[hcclBfloat16];
    made.reduction = kReductions[hcclMax];
    made.counts = made.collective->counts(4096, made.type, made.ranks);
    made.algorithm = "node";
    made.out_of_place.iterations = 33;
    made.out_of_place.nanoseconds = across_ranks({1000.0, 2000.0, 4000.0, 1000.0});
    made.out_of_place.wrong = 5;
    made.out_of_place.latency = Latency{10, {1, 2, 3, 4, 5, 6}, 2};
    made.in_place = made.out_of_place;
    made.in_place->wrong.reset();
    return made;
  }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(directory_), fs::directory_iterator()));
  }
  void write() {
    JsonReport report(options_, 2604, std::vector<RankFacts>(4));
    report.add(row());
    Totals totals;
    totals.add(row(), Averaging::average);
    report.write(totals);
  }

  fs::path directory_;
  Options options_;
};

TEST_F(JsonFile, HoldsTheRowInNanoseconds) {
  write();
  std::ifstream file(options_.json_path);
  const auto json = nlohmann::json::parse(file);
  EXPECT_EQ(json["collective"], "reduce_scatter");
  EXPECT_EQ(json["ranks"], 4);
  EXPECT_EQ(json["wrong"], 5);
  EXPECT_GT(json["host"]["cores"], 0);
  EXPECT_FALSE(json["host"]["kernel"].get<std::string>().empty());
  EXPECT_EQ(json["options"]["iterations"], 20);
  ASSERT_EQ(json["rows"].size(), 1U);
  const auto& found = json["rows"][0];
  EXPECT_EQ(found["size_bytes"], 4096);
  EXPECT_EQ(found["count"], 512);
  EXPECT_EQ(found["type"], "bfloat16");
  EXPECT_EQ(found["redop"], "max");
  EXPECT_EQ(found["algorithm"], "node");
  const auto& cell = found["out_of_place"];
  EXPECT_EQ(cell["iterations"], 33);
  EXPECT_EQ(cell["time_ns"], 2000.0);
  EXPECT_EQ(cell["time_ns_across_ranks"]["max"], 4000.0);
  EXPECT_EQ(cell["time_ns_across_ranks"]["slowest_rank"], 2);
  EXPECT_NEAR(cell["busbw_gb_per_s"], 4096.0 / 2000.0 * 0.75, 1e-9);
  EXPECT_EQ(cell["latency_ns"]["p99"], 5.0);
  EXPECT_EQ(cell["wrong"], 5);
  EXPECT_TRUE(found["in_place"]["wrong"].is_null());
}

TEST_F(JsonFile, LeavesNothingBesideIt) {
  write();
  write();
  EXPECT_EQ(files(), 1U);
}

TEST_F(JsonFile, IsWrittenThroughALink) {
  const fs::path target = directory_ / "target.json";
  fs::create_symlink(target, options_.json_path);
  write();
  EXPECT_TRUE(fs::is_symlink(options_.json_path));
  EXPECT_TRUE(fs::is_regular_file(target));
}

TEST_F(JsonFile, DoesNotReplaceADevice) {
  const fs::path link = directory_ / "null";
  fs::create_symlink("/dev/null", link);
  options_.json_path = link.string();
  require_writable(options_.json_path);
  write();
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(JsonFile, IsRefusedBeforehandWhereItCannotBeWritten) {
  EXPECT_THROW(require_writable(directory_.string()), UsageError);
  EXPECT_THROW(require_writable((directory_ / "missing" / "out.json").string()), UsageError);
  EXPECT_THROW(require_writable("/proc/out.json"), UsageError);
  require_writable(options_.json_path);
  EXPECT_EQ(files(), 0U);
}

}  // namespace
}  // namespace hccl_perf
