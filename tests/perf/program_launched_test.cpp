// SPDX-License-Identifier: Apache-2.0
// Tests hccl-perf under launchers other than its own: mpirun with PMIx, without PMIx and with
// HCCL_COMM_ID, and processes that have only a launcher's variables.
#include "run_program.h"
#include "support/free_port.h"

#include <algorithm>
#include <memory>
#include <tuple>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hccl_perf {
namespace {

using Words = CommandLine;

const Program::Variables kAsRoot = {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"};

Outcome run_under_mpirun(const Words& before, const Words& arguments) {
  Words words = {"mpirun", "--oversubscribe", "--bind-to", "none", "-np", "3"};
  words.append(before);
  words.push_back(program_path());
  words.append(arguments);
  return Program(words, kAsRoot).wait();
}

// Runs a failing program twice under mpirun. The first run supplies the status of the result: it
// aborts the job at the first failure and may lose the last output. The second run supplies the
// output: it lets all processes exit, but may lose the status.
Outcome run_failing_under_mpirun(Words before, const Words& arguments) {
  const int status = run_under_mpirun(before, arguments).status;
  before.append("--mca orte_abort_on_non_zero_status 0");
  Outcome outcome = run_under_mpirun(before, arguments);
  outcome.status = status;
  return outcome;
}

void expect_three_ranks_and_right_data(const Outcome& outcome) {
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  expect_parts(outcome.out, {"#  Rank  2 "});
  const auto rows = table_rows(outcome.out);
  ASSERT_EQ(rows.size(), 2U) << outcome.out << outcome.err;
  for (const auto& row : rows) {
    EXPECT_EQ(row[8], "0");
    EXPECT_EQ(row[12], "0");
  }
}

const Words kSmallRun = {"all_reduce", "-b", "1K", "-e", "4K", "-f", "4", "-n", "2"};

class UnderMpirun : public testing::Test {
 protected:
  void SetUp() override {
    if (!installed("mpirun")) GTEST_SKIP() << "needs mpirun (package openmpi-bin)";
  }
};

TEST_F(UnderMpirun, PassesTheIdOverPmix) {
  expect_three_ranks_and_right_data(run_under_mpirun({}, kSmallRun));
}

TEST_F(UnderMpirun, PassesTheIdOverASocketWithoutPmix) {
  expect_three_ranks_and_right_data(run_under_mpirun({"env", "-u", "PMIX_NAMESPACE"}, kSmallRun));
}

TEST_F(UnderMpirun, LeavesTheIdToHcclCommId) {
  const std::string address = "HCCL_COMM_ID=127.0.0.1:" + std::to_string(hccl::test::free_port());
  expect_three_ranks_and_right_data(run_under_mpirun({"-x", address}, kSmallRun));
}

TEST_F(UnderMpirun, FailsOnWrongData) {
  const Outcome outcome = run_failing_under_mpirun(
      {"-x", std::string("LD_PRELOAD=") + HCCL_PERF_FAULTS, "-x", "PERF_TEST_FAULT=short"},
      kSmallRun);
  EXPECT_NE(outcome.status, 0);
  expect_parts(outcome.out, {" FAILED"});
}

TEST_F(UnderMpirun, RefusesToStartProcesses) {
  const Outcome outcome = run_failing_under_mpirun({}, {"all_reduce", "-g", "2"});
  EXPECT_NE(outcome.status, 0);
  expect_parts(outcome.err, {"-g 2"});
}

TEST_F(UnderMpirun, NamesABusyRankAtTheTimeout) {
  const Outcome outcome = run_failing_under_mpirun(
      {"-x", std::string("LD_PRELOAD=") + HCCL_PERF_FAULTS, "-x", "PERF_TEST_FAULT=stall:1"},
      {"all_reduce", "-b", "1K", "-e", "4K", "-f", "4", "-T", "3"});
  EXPECT_NE(outcome.status, 0);
  expect_parts(outcome.err, {"not finished after 3 s (-T): rank "});
}

Outcome run_as_rank(const std::string& rank, const std::string& size, const Words& arguments) {
  return run_hccl_perf(arguments, {"RANK=" + rank, "WORLD_SIZE=" + size});
}

TEST(UnderTorchrunVariables, RefusesMoreRanksThanACommunicatorHas) {
  const std::tuple<const char*, Words, const char*> wrong[] = {
      {"4097", {"all_reduce"}, "4097 ranks"},
      {"65", {"all_reduce", "-t", "64"}, "4160 ranks"},
      {"2147483647", {"all_reduce", "-t", "2"}, "4294967294 ranks"},
      {"2", {"broadcast", "-r", "2"}, "-r 2"}};
  for (const auto& [size, arguments, named] : wrong) {
    const Outcome first = run_as_rank("0", size, arguments);
    EXPECT_EQ(first.status, 2) << size;
    expect_line(first.err, {named});
    const Outcome other = run_as_rank("1", size, arguments);
    EXPECT_EQ(other.status, 2) << size;
    EXPECT_EQ(other.err, "") << "rank 0 prints for all ranks";
  }
}

TEST(UnderTorchrunVariables, RefusesASizeOfZero) {
  const Outcome outcome = run_as_rank("0", "0", {"all_reduce"});
  EXPECT_EQ(outcome.status, 2);
  expect_parts(outcome.err, {"rank 0 of 0"});
}

TEST(UnderTorchrunVariables, FindsItsPeersBySocketIfHcclCommIdIsEmpty) {
  std::vector<std::unique_ptr<Program>> programs;
  for (int rank = 2; rank >= 0; --rank) {
    const std::string number = std::to_string(rank);
    Words words = {program_path()};
    words.append(kSmallRun);
    programs.push_back(std::make_unique<Program>(
        words, Program::Variables{"RANK=" + number, "WORLD_SIZE=3", "LOCAL_RANK=" + number,
                                  "LOCAL_WORLD_SIZE=3", "HCCL_COMM_ID="}));
  }
  expect_three_ranks_and_right_data(programs[2]->wait());
  for (int i = 0; i < 2; ++i) {
    const Outcome outcome = programs[static_cast<std::size_t>(i)]->wait();
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "") << "only rank 0 prints";
  }
}

}  // namespace
}  // namespace hccl_perf
