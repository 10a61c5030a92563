// SPDX-License-Identifier: Apache-2.0
// Determines which launcher started this process, and the process's place in the job. Uses only the
// variables of mpirun, srun, prterun, mpiexec and torchrun, so that no MPI library is needed.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace hccl_perf {

struct LaunchEnvironment {
  std::string launcher;  // for messages
  int rank = 0;
  int size = 0;         // 0 if only PMIx provides it
  int local_rank = -1;  // -1 if unknown, as is local_size
  int local_size = -1;
  std::string job;  // identifies the job; equal in all its processes on this node

  [[nodiscard]] bool on_one_node() const { return local_size == size; }
};

// Looks up a variable: returns its value, or null if it is not set.
using Environment = std::function<const char*(const char*)>;

// Returns the value of a variable, or null if the variable is not set or is empty.
[[nodiscard]] const char* value_of(const Environment& environment, const char* name);

// Parses `written`, the value of the environment variable `name`. If the value is not a number from
// `least` to `most`, throws a UsageError that names the variable.
[[nodiscard]] int number_of(const char* name, const char* written, int least, int most);

inline constexpr int kMostRanks = 4096;      // in a communicator
inline constexpr int kMostRanksOfNode = 64;  // in a communicator, on one node

// Returns the values of the launcher's variables, or nothing if no launcher is recognised. Throws
// UsageError if a variable is not a number, or if the numbers contradict each other.
[[nodiscard]] std::optional<LaunchEnvironment> find_launcher(const Environment& environment);

// Throws UsageError if the job, with `threads` ranks in each process, has more ranks than a
// communicator can have in total or on one node.
void require_communicator(const LaunchEnvironment& launch, int threads);

}  // namespace hccl_perf
