// SPDX-License-Identifier: Apache-2.0
// Tests the files that --compare accepts and refuses.
#include "baseline.h"

#include "report_formats.h"
#include "sample_results.h"

#include <fstream>

#include <nlohmann/json.hpp>

namespace hccl_perf {
namespace {

class BaselineFile : public TemporaryDirectory {
 protected:
  void SetUp() override {
    TemporaryDirectory::SetUp();
    options_ = sample_options("all_reduce");
    options_.min_bytes = options_.max_bytes = 4096;
    const Row row = sample_row("all_reduce", 4096, {100, 101, 99, 100, 102});
    json_ = nlohmann::json::parse(json_text(sample_results(options_, {row})));
  }

  Baseline read(const std::string& contents) {
    std::ofstream(path("base.json")) << contents;
    return read_baseline(path("base.json"));
  }
  void expect_refused(const std::string& contents, const std::string& why) {
    try {
      static_cast<void>(read(contents));
      ADD_FAILURE() << "accepted: " << contents;
    } catch (const UsageError& error) {
      expect_says(error, why);
    }
  }
  void expect_says(const UsageError& error, const std::string& why) {
    const std::string message = error.what();
    EXPECT_NE(message.find("--compare " + path("base.json")), std::string::npos) << message;
    EXPECT_NE(message.find(why), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
  void expect_not_comparable(const Options& options, int ranks, const std::string& why) {
    const Baseline baseline = read(json_.dump());
    try {
      require_comparable(baseline, options, ranks);
      ADD_FAILURE() << "comparable: " << why;
    } catch (const UsageError& error) {
      expect_says(error, why);
    }
  }

  Options options_;
  nlohmann::json json_;
};

TEST_F(BaselineFile, RoundTripsThroughJson) {
  const Baseline baseline = read(json_.dump());
  EXPECT_EQ(baseline.collective, "all_reduce");
  EXPECT_EQ(baseline.ranks, 4);
  EXPECT_EQ(baseline.host.cores, 16);
  ASSERT_EQ(baseline.cells.keys.size(), 2U);
  const CellKey key{"bfloat16", "max", -1, 4096, Placement::in_place};
  EXPECT_EQ(baseline.cells.samples.at(key), (std::vector<double>{100, 101, 99, 100, 102}));
  EXPECT_NO_THROW(require_comparable(baseline, options_, 4));
}

TEST_F(BaselineFile, MayLackInPlaceResults) {
  json_["rows"][0]["in_place"] = nullptr;
  EXPECT_EQ(read(json_.dump()).cells.keys.size(), 1U);
}

TEST_F(BaselineFile, ErrorsAreOneLine) {
  EXPECT_THROW(static_cast<void>(read_baseline(path("missing.json"))), UsageError);
  EXPECT_THROW(static_cast<void>(read_baseline(directory_.string())), UsageError);
  expect_refused("", "invalid JSON");
  expect_refused(json_.dump(2).substr(0, 300), "invalid JSON at byte");
  expect_refused("[1, 2]", "the form that --json writes");
  expect_refused("{}", "program");
  const auto changed = [&](const char* pointer, const nlohmann::json& value) {
    auto copy = json_;
    copy[nlohmann::json::json_pointer(pointer)] = value;
    return copy.dump();
  };
  expect_refused(changed("/program", "nccl-tests"), "not written by hccl-perf");
  expect_refused(changed("/rows", 7), "base.json");
  expect_refused(changed("/ranks", "four"), "must be number");
  expect_refused(changed("/rows/0/out_of_place/samples_ns", {1, 2}), "2 timed passes");
  expect_refused(changed("/rows/0/out_of_place/samples_ns", {1, 2, 3, 0, 5}), "not positive");
  expect_refused(changed("/rows/0/out_of_place/samples_ns", {1, 2, 3, "x", 5}), "must be number");
  auto without = json_;
  without["rows"][0]["out_of_place"].erase("samples_ns");
  expect_refused(without.dump(), "samples_ns");
}

TEST_F(BaselineFile, IsComparableOnlyWithTheSameKindOfRun) {
  expect_not_comparable(options_, 8, "with 4 ranks, but this run uses 8");
  Options other = sample_options("broadcast");
  expect_not_comparable(other, 4, "with all_reduce, but this run uses broadcast");
  other = options_;
  other.averaging = Averaging::maximum;
  expect_not_comparable(other, 4, "-a avg");
  other = options_;
  other.blocking = Blocking::wait;
  expect_not_comparable(other, 4, "-z 0");
  other = options_;
  other.types = {kDataTypes[hcclFloat32]};
  expect_not_comparable(other, 4, "no cell in common with this run");
  other = options_;
  other.min_bytes = other.max_bytes = 8192;
  expect_not_comparable(other, 4, "no cell in common with this run");
}

}  // namespace
}  // namespace hccl_perf
