// SPDX-License-Identifier: Apache-2.0
// Sample results for the tests of reports.
#pragma once

#include "results.h"
#include "text.h"

#include <cstring>
#include <filesystem>
#include <locale>

#include <gtest/gtest.h>
#include <unistd.h>

namespace hccl_perf {

inline Options sample_options(const char* collective) {
  Options options;
  options.collective = find_collective(collective);
  options.types = {kDataTypes[hcclBfloat16]};
  options.reductions = {kReductions[hcclMax]};
  return options;
}

inline Traffic sample_traffic(const char* algorithm = "node", const char* transport = "memory") {
  Traffic traffic{};
  std::strcpy(traffic.algorithm, algorithm);
  std::strcpy(traffic.transport, transport);
  return traffic;
}

// Returns the result of passes that took the same time on every rank.
inline CellResult sample_cell(const std::vector<double>& nanoseconds) {
  CellResult cell;
  cell.iterations = 20;
  for (const double each : nanoseconds) cell.passes.push_back(across_ranks({each, each}));
  cell.nanoseconds = cell.passes[median_position(nanoseconds)];
  cell.traffic.assign(4, sample_traffic());
  cell.wrong = 0;
  return cell;
}

inline Row sample_row(const char* collective, std::uint64_t bytes,
                      const std::vector<double>& nanoseconds, int root = -1) {
  Row row;
  row.collective = find_collective(collective);
  row.ranks = 4;
  row.type = kDataTypes[hcclBfloat16];
  row.reduction = row.collective->reduces ? kReductions[hcclMax] : kNoReduction;
  row.root = root;
  row.counts = row.collective->counts(bytes, row.type, row.ranks);
  row.out_of_place = sample_cell(nanoseconds);
  row.in_place = sample_cell(nanoseconds);
  return row;
}

inline Results sample_results(const Options& options, const std::vector<Row>& rows) {
  RankFacts rank;
  std::strcpy(rank.host, "somewhere");
  Results results{options,
                  {2604, "1.0", "/lib/libSynapse.so"},
                  std::vector<RankFacts>(4, rank),
                  {"somewhere", "Linux", "Some CPU", 16, 8ULL << 30, {2.5, 4ULL << 30}},
                  {{"HCCL_ALGO", "ring"}},
                  std::chrono::system_clock::from_time_t(1'770'000'000),  // 2026-02-02T02:40:00Z
                  rows,
                  {}};
  for (const Row& row : rows) results.totals.add(row, options.averaging);
  return results;
}

// A fixture with a temporary directory.
class TemporaryDirectory : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::path(testing::TempDir()) / text("hccl-perf-files.", getpid());
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] std::string path(const std::string& name) const {
    return (directory_ / name).string();
  }
  [[nodiscard]] std::size_t files() const {
    using Iterator = std::filesystem::directory_iterator;
    return static_cast<std::size_t>(std::distance(Iterator(directory_), Iterator()));
  }

  std::filesystem::path directory_;
};

// Makes streams that are created during its lifetime print 1234.5 as 1.234,5.
class CommaLocale {
 public:
  CommaLocale() : previous_(std::locale::global(std::locale(std::locale(), new Commas))) {}
  ~CommaLocale() { std::locale::global(previous_); }
  CommaLocale(const CommaLocale&) = delete;
  CommaLocale& operator=(const CommaLocale&) = delete;

 private:
  struct Commas : std::numpunct<char> {
    [[nodiscard]] char do_decimal_point() const override { return ','; }
    [[nodiscard]] char do_thousands_sep() const override { return '.'; }
    [[nodiscard]] std::string do_grouping() const override { return "\3"; }
  };
  std::locale previous_;
};

}  // namespace hccl_perf
