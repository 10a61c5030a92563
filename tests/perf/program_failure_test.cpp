// SPDX-License-Identifier: Apache-2.0
// Tests hccl-perf with wrong or differently rounded data, a failed rank, a dead parent, an expired
// time limit, or an output that cannot be written.
#include "run_program.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <signal.h>
#include <unistd.h>

namespace hccl_perf {
namespace {

Outcome run_with_fault(const std::string& fault, const CommandLine& arguments) {
  return run_hccl_perf(arguments,
                       {std::string("LD_PRELOAD=") + HCCL_PERF_FAULTS, "PERF_TEST_FAULT=" + fault});
}

// Requires that the status is 1, and that each of `survivors` printed an error that names rank 1.
void expect_survivors_name_rank_1(const Outcome& outcome, const std::vector<int>& survivors) {
  EXPECT_EQ(outcome.status, 1);
  for (const int rank : survivors) {
    const std::string start = "hccl-perf: rank " + std::to_string(rank) + ": ";
    const std::size_t line = outcome.err.find(start);
    ASSERT_NE(line, std::string::npos) << "rank " << rank << " printed nothing:\n" << outcome.err;
    const std::string line_of_rank = outcome.err.substr(line, outcome.err.find('\n', line) - line);
    expect_parts(line_of_rank, {"rank 1"});
  }
}

// Measures all-reduces of 4 KiB, whose data must be wrong. Returns the columns of the only row.
std::vector<std::string> row_with_wrong_data(const std::string& fault, const char* ranks) {
  const Outcome outcome =
      run_with_fault(fault, {"all_reduce", "-g", ranks, "-b", "4K", "-e", "4K", "-n", "1"});
  EXPECT_EQ(outcome.status, 1);
  const auto rows = table_rows(outcome.out);
  EXPECT_EQ(rows.size(), 1U) << outcome.err;
  if (rows.size() != 1) return std::vector<std::string>(14);
  const int wrong = std::atoi(rows[0][8].c_str()) + std::atoi(rows[0][12].c_str());
  const std::string footer = "# Out of bounds values : " + std::to_string(wrong) + " FAILED";
  expect_parts(outcome.out, {footer});
  return rows[0];
}

TEST(HcclPerfFailure, AMissingElementIsCountedOnEveryRank) {
  const auto row = row_with_wrong_data("short", "3");
  EXPECT_EQ(row[8], "3");
  EXPECT_EQ(row[12], "3");
}

TEST(HcclPerfFailure, AWriteBeyondTheBufferIsDetected) {
  EXPECT_EQ(row_with_wrong_data("long", "2")[8], "2");
}

TEST(HcclPerfFailure, AMissingContributionIsNotTakenForRounding) {
  const auto row = row_with_wrong_data("missing:1", "3");
  EXPECT_GT(std::atoi(row[8].c_str()), 1024);
  EXPECT_EQ(row[12], "0") << "in place there is no poison to add";
}

TEST(HcclPerfFailure, AReceiverDetectsAWrongMessage) {
  const std::pair<const char*, const char*> receivers[] = {
      {"pingpong", "4"}, {"bidirectional", "4"}, {"message_rate", "2"}};
  for (const auto& [name, ranks] : receivers) {
    const Outcome outcome = run_with_fault("shifted", {name, "-g", "4", "-b", "8", "-e", "8"});
    EXPECT_EQ(outcome.status, 1);
    const auto rows = table_rows(outcome.out);
    ASSERT_EQ(rows.size(), 1U) << outcome.err;
    // Each receiver counts two wrong elements per message. message_rate sends 64 messages.
    const int elements = std::string(name) == "message_rate" ? 2 * 64 : 2;
    EXPECT_EQ(rows[0][8], std::to_string(std::atoi(ranks) * elements)) << name;
  }
}

TEST(HcclPerfFailure, ADifferentOrderIsRightWithinRounding) {
  const std::string file = testing::TempDir() + "hccl-perf-order." + std::to_string(getpid());
  const Outcome outcome =
      run_with_fault("rotate", {"all_reduce", "-g", "3", "-b", "64K", "-e", "64K", "-n", "1",
                                "--repeats", "1", "--json", file});
  EXPECT_EQ(outcome.status, 0) << outcome.err << outcome.out;
  const auto json = nlohmann::json::parse(std::ifstream(file));
  std::remove(file.c_str());
  EXPECT_EQ(json["wrong"], 0);
  EXPECT_EQ(json["rows"][0]["out_of_place"]["check"], "within rounding");
  EXPECT_EQ(json["rows"][0]["in_place"]["check"], "bitwise");
}

TEST(HcclPerfFailure, ARankThatDiesWhileJoiningIsNamedByAll) {
  const Outcome outcome =
      run_with_fault("die_early:1", {"all_reduce", "-g", "4", "-b", "8", "-e", "1K", "-f", "2"});
  expect_parts(outcome.err, {"hccl-perf: rank 1 (pid ", "was killed by signal 9"});
  expect_survivors_name_rank_1(outcome, {0, 2, 3});
}

TEST(HcclPerfFailure, ARankThatDiesInACollectiveIsNamedByAll) {
  const Outcome outcome =
      run_with_fault("die:1", {"all_reduce", "-g", "4", "-b", "8", "-e", "1M", "-f", "2"});
  expect_parts(outcome.err, {"was killed by signal 9"});
  expect_survivors_name_rank_1(outcome, {0, 2, 3});
}

TEST(HcclPerfFailure, ATimeoutNamesUnfinishedRanks) {
  const Outcome outcome = run_with_fault(
      "stall:1", {"all_reduce", "-g", "2", "-b", "8", "-e", "1M", "-f", "2", "-T", "2"});
  EXPECT_EQ(outcome.status, 1);
  expect_parts(outcome.err, {"not finished after 2 s (-T): rank 0 (pid ", "rank 1 (pid "});
}

TEST(HcclPerfFailure, KillingTheParentKillsTheChildren) {
  Program program(
      {program_path(), "all_reduce", "-g", "4", "-b", "8", "-e", "8", "-n", "100", "-N", "0"});
  ASSERT_TRUE(program.wait_for_output("     float     sum "));
  program.signal(SIGKILL);
  // wait() returns once the last child that holds the streams open has exited.
  EXPECT_EQ(program.wait().status, 128 + SIGKILL);
}

// Pipes the output of hccl-perf into `reader`. The result has hccl-perf's exit status.
Outcome run_piped(const std::string& arguments, const std::string& reader) {
  const std::string line =
      program_path() + ' ' + arguments + " | " + reader + "; exit ${PIPESTATUS[0]}";
  return Program({"bash", "-c", line}).wait();
}

// Returns the lines printed by the program itself, without the library's lines about failed calls.
std::string own_lines(const std::string& text) {
  std::istringstream lines(text);
  std::string own;
  for (std::string line; std::getline(lines, line);)
    if (line.find("hccl WARN ") != 0) own += line + '\n';
  return own;
}

TEST(HcclPerfFailure, EndsQuietlyWhenItsOutputIsClosed) {
  for (const char* ranks : {"-g 4", "-g 2 -t 2"}) {
    const Outcome outcome =
        run_piped(std::string("all_reduce -b 8 -e 1K -f 2 -n 1 -N 100000 ") + ranks, "head -1");
    EXPECT_EQ(outcome.status, 128 + SIGPIPE);
    expect_line(outcome.out, {});
    // If rank 0 exits while another rank is in a call, the library logs the failed call.
    EXPECT_EQ(own_lines(outcome.err), "");
  }
}

TEST(HcclPerfFailure, ReportsWhyHelpCannotBeWritten) {
  for (const char* option : {"--help", "--version"}) {
    const Outcome outcome =
        Program({"bash", "-c", program_path() + ' ' + option + " > /dev/full"}).wait();
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.err, "hccl-perf: cannot write to stdout: No space left on device\n");
  }
}

}  // namespace
}  // namespace hccl_perf
