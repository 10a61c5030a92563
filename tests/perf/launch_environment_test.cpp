// SPDX-License-Identifier: Apache-2.0
// Tests the detection of launchers by their environment variables.
#include "launch_environment.h"

#include "text.h"

#include <map>

#include <gtest/gtest.h>

namespace hccl_perf {
namespace {

using Variables = std::map<std::string, std::string>;

std::optional<LaunchEnvironment> find(const Variables& variables) {
  return find_launcher([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(LaunchEnvironment, IsEmptyWithoutALauncher) {
  EXPECT_FALSE(find({}));
  EXPECT_FALSE(find({{"RANK", "1"}}));
  EXPECT_FALSE(find({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}))
      << "a batch script is not a step";
  EXPECT_FALSE(find({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_STEP_ID", ""}}));
  EXPECT_FALSE(find({{"PMIX_RANK", "0"}, {"PMIX_NAMESPACE", ""}}));
}

TEST(LaunchEnvironment, ReadsOpenMpi) {
  const auto found = find({{"OMPI_COMM_WORLD_RANK", "3"},
                           {"OMPI_COMM_WORLD_SIZE", "8"},
                           {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                           {"PMIX_NAMESPACE", "77"},
                           {"PMIX_RANK", "3"}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->launcher, "Open MPI");
  EXPECT_EQ(found->rank, 3);
  EXPECT_EQ(found->size, 8);
  EXPECT_EQ(found->local_rank, 1);
  EXPECT_EQ(found->local_size, 2);
  EXPECT_FALSE(found->on_one_node());
  EXPECT_EQ(found->job, "Open MPI.77");
}

TEST(LaunchEnvironment, ReadsPmixWithoutASize) {
  const auto found = find({{"PMIX_RANK", "2"}, {"PMIX_NAMESPACE", "job"}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->launcher, "PMIx");
  EXPECT_EQ(found->rank, 2);
  EXPECT_EQ(found->size, 0);
}

TEST(LaunchEnvironment, ReadsAStepOfSlurm) {
  const auto found = find({{"SLURM_STEP_ID", "4"},
                           {"SLURM_JOB_ID", "12"},
                           {"SLURM_PROCID", "1"},
                           {"SLURM_NTASKS", "16"},
                           {"SLURM_STEP_NUM_TASKS", "2"},
                           {"SLURM_LOCALID", "1"},
                           {"SLURM_STEP_TASKS_PER_NODE", "2"}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->launcher, "Slurm");
  EXPECT_EQ(found->size, 2) << "the step's tasks, not the allocation's";
  EXPECT_TRUE(found->on_one_node());
  EXPECT_EQ(found->job, "Slurm.12.4");
}

TEST(LaunchEnvironment, TreatsSlurmTasksOnSeveralNodesAsUnknown) {
  const auto found = find({{"SLURM_STEP_ID", "0"},
                           {"SLURM_JOB_ID", "12"},
                           {"SLURM_PROCID", "1"},
                           {"SLURM_NTASKS", "8"},
                           {"SLURM_STEP_TASKS_PER_NODE", "4(x2)"}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->local_size, -1);
}

TEST(LaunchEnvironment, ReadsPmiAndTorchrun) {
  const auto pmi = find({{"PMI_RANK", "0"}, {"PMI_SIZE", "4"}, {"MPI_LOCALNRANKS", "4"}});
  ASSERT_TRUE(pmi);
  EXPECT_EQ(pmi->launcher, "PMI");
  EXPECT_TRUE(pmi->on_one_node());
  const auto torchrun =
      find({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"}});
  ASSERT_TRUE(torchrun);
  EXPECT_EQ(torchrun->launcher, "torchrun");
  EXPECT_EQ(torchrun->rank, 1);
}

TEST(LaunchEnvironment, NamesAnInvalidVariable) {
  try {
    static_cast<void>(find({{"OMPI_COMM_WORLD_RANK", "x"}, {"OMPI_COMM_WORLD_SIZE", "2"}}));
    FAIL() << "accepted";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("OMPI_COMM_WORLD_RANK"), std::string::npos);
  }
  EXPECT_THROW(static_cast<void>(find({{"RANK", "2"}, {"WORLD_SIZE", "2"}})), UsageError);
}

TEST(LaunchEnvironment, RefusesContradictoryNumbers) {
  const Variables wrong[] = {
      {{"RANK", "0"}, {"WORLD_SIZE", "0"}},
      {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "2"}},
      {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "1"}},
      {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "2147483647"}},
      {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "0"}}};
  for (const Variables& variables : wrong)
    EXPECT_THROW(static_cast<void>(find(variables)), UsageError);
}

TEST(LaunchEnvironment, IsLimitedToTheRanksOfACommunicator) {
  LaunchEnvironment launch;
  launch.size = 4096;
  EXPECT_NO_THROW(require_communicator(launch, 1));
  EXPECT_THROW(require_communicator(launch, 2), UsageError);
  launch.size = 4097;
  EXPECT_THROW(require_communicator(launch, 1), UsageError);
  launch.size = 2147483647;
  EXPECT_THROW(require_communicator(launch, 2), UsageError);
}

TEST(LaunchEnvironment, IsLimitedToTheRanksOfACommunicatorPerNode) {
  LaunchEnvironment launch;
  launch.size = 128;
  launch.local_size = 64;
  EXPECT_NO_THROW(require_communicator(launch, 1));
  EXPECT_THROW(require_communicator(launch, 2), UsageError);
  launch.local_size = 65;
  EXPECT_THROW(require_communicator(launch, 1), UsageError);
}

}  // namespace
}  // namespace hccl_perf
