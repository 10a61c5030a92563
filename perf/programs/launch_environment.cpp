// SPDX-License-Identifier: Apache-2.0
// Recognises launchers by a table of the variables that each one sets.
#include "launch_environment.h"

#include "text.h"

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdint>
#include <cstring>

#include <unistd.h>

namespace hccl_perf {
namespace {

// The variables of a launcher. Each value has up to two variables; the first one that is set
// counts.
struct Variables {
  const char* launcher;
  const char* required;  // another variable that must be set; null if rank and size are enough
  const char* rank[2];
  const char* size[2];  // {null} if the size comes from PMIx
  const char* local_rank[2];
  const char* local_size[2];
  const char* job[2];
};

constexpr Variables kLaunchers[] = {
    {"Open MPI",
     nullptr,
     {"OMPI_COMM_WORLD_RANK"},
     {"OMPI_COMM_WORLD_SIZE"},
     {"OMPI_COMM_WORLD_LOCAL_RANK"},
     {"OMPI_COMM_WORLD_LOCAL_SIZE"},
     {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}},
    // Requires a job step: a batch script also has SLURM_PROCID, but is a single process.
    {"Slurm",
     "SLURM_STEP_ID",
     {"SLURM_PROCID"},
     {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
     {"SLURM_LOCALID"},
     {"SLURM_STEP_TASKS_PER_NODE"},
     {"SLURM_JOB_ID"}},
    {"PMIx",
     "PMIX_NAMESPACE",
     {"PMIX_RANK"},
     {nullptr},
     {"PMIX_LOCAL_RANK"},
     {"PMIX_LOCAL_SIZE"},
     {"PMIX_NAMESPACE"}},
    {"PMI",
     nullptr,
     {"PMI_RANK"},
     {"PMI_SIZE"},
     {"MPI_LOCALRANKID", "PMI_LOCAL_RANK"},
     {"MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"},
     {"PMI_JOBID"}},
    {"torchrun",
     nullptr,
     {"RANK"},
     {"WORLD_SIZE"},
     {"LOCAL_RANK"},
     {"LOCAL_WORLD_SIZE"},
     {"MASTER_PORT"}},
};

// Returns the first variable in `names` that is set, or null if none is.
const char* first_set(const Environment& environment, const char* const (&names)[2]) {
  for (const char* name : names) {
    if (name != nullptr && value_of(environment, name) != nullptr) return name;
  }
  return nullptr;
}

// Returns the value of the first variable in `names` that is set. Returns `absent` if none is set,
// or if the value lists counts for several nodes. Throws UsageError if the value is not a number.
int number(const Environment& environment, const char* const (&names)[2], int absent) {
  const char* name = first_set(environment, names);
  if (name == nullptr) return absent;
  const std::string written = value_of(environment, name);
  // Slurm writes tasks per node as "4", or for several nodes as "4(x2)" or "4,3".
  const std::string first = written.substr(0, written.find_first_of("(,"));
  const int value = number_of(name, first.c_str(), 0, INT_MAX);
  return first == written ? value : absent;
}

std::string job_name(const Variables& variables, const Environment& environment) {
  const char* job = first_set(environment, variables.job);
  std::string name =
      text(variables.launcher, '.', job != nullptr ? value_of(environment, job) : "");
  if (std::strcmp(variables.launcher, "Slurm") == 0)
    name += text('.', environment("SLURM_STEP_ID"));
  // Without a job number, or with torchrun, the process id of the launcher's agent identifies the
  // job: the agent is the parent of all the job's ranks on this node.
  const bool torchrun = std::strcmp(variables.launcher, "torchrun") == 0;
  if (job == nullptr || torchrun) name += text(".parent", getppid());
  return name;
}

void require_consistent(const LaunchEnvironment& found, bool has_size) {
  const auto require = [&](bool holds, const char* what, int number, int count) {
    if (holds) return;
    throw UsageError(
        text("the environment specifies ", what, " ", number, " of ", count, " (", found.launcher,
             count == 0 ? "); a job has at least one rank" : "); ranks are numbered from 0"));
  };
  if (has_size) {
    require(found.rank < found.size, "rank", found.rank, found.size);
    require(found.local_rank < found.size, "local rank", found.local_rank, found.size);
    if (found.local_size > found.size) {
      throw UsageError(text("the environment specifies ", found.local_size,
                            " ranks on this node, but only ", found.size, " in total (",
                            found.launcher, ")"));
    }
  }
  if (found.local_size >= 0)
    require(std::max(found.local_rank, 0) < found.local_size, "local rank",
            std::max(found.local_rank, 0), found.local_size);
}

}  // namespace

const char* value_of(const Environment& environment, const char* name) {
  const char* value = environment(name);
  return value == nullptr || *value == '\0' ? nullptr : value;
}

int number_of(const char* name, const char* written, int least, int most) {
  int value = 0;
  const char* const end = written + std::strlen(written);
  const auto [stopped, error] = std::from_chars(written, end, value);
  if (error == std::errc() && stopped == end && value >= least && value <= most) return value;
  const std::string range = most == INT_MAX ? text(least, " upwards") : text(least, " to ", most);
  throw UsageError(
      text("environment variable ", name, "='", written, "' is not a number from ", range));
}

std::optional<LaunchEnvironment> find_launcher(const Environment& environment) {
  for (const Variables& variables : kLaunchers) {
    const bool has_size =
        variables.size[0] == nullptr || first_set(environment, variables.size) != nullptr;
    const bool has_required =
        variables.required == nullptr || value_of(environment, variables.required) != nullptr;
    if (first_set(environment, variables.rank) == nullptr || !has_size || !has_required) continue;
    LaunchEnvironment found{.launcher = variables.launcher,
                            .rank = number(environment, variables.rank, 0),
                            .size = number(environment, variables.size, 0),
                            .local_rank = number(environment, variables.local_rank, -1),
                            .local_size = number(environment, variables.local_size, -1),
                            .job = job_name(variables, environment)};
    require_consistent(found, variables.size[0] != nullptr);
    return found;
  }
  return std::nullopt;
}

void require_communicator(const LaunchEnvironment& launch, int threads) {
  const auto require = [&](int processes, int most, const char* where) {
    const std::int64_t ranks = std::int64_t{processes} * threads;
    if (ranks <= most) return;
    const std::string with = threads > 1 ? text(" with -t ", threads) : "";
    throw UsageError(text(launch.launcher, " started ", processes, " processes", where, ", which",
                          with, " makes ", ranks, " ranks, but a communicator allows at most ",
                          most, where));
  };
  require(launch.size, kMostRanks, "");
  require(launch.local_size, kMostRanksOfNode, " on this node");
}

}  // namespace hccl_perf
