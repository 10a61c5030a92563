// SPDX-License-Identifier: Apache-2.0
// Which launcher started this process, and as what: read from the variables that mpirun, srun,
// prterun, mpiexec and torchrun set, so that no MPI library is needed.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace hccl_perf {

struct LaunchEnvironment {
  std::string launcher;  // for messages
  int rank = 0;
  int size = 0;         // 0: the launcher tells it over PMIx only
  int local_rank = -1;  // -1: unknown
  int local_size = -1;
  std::string job;  // names the job on this node: equal in all its processes, unlike in other jobs'

  [[nodiscard]] bool on_one_node() const { return local_size == size; }
};

// Null for a variable that is not set.
using Environment = std::function<const char*(const char*)>;

// The value of a variable; null if it is not set, or set to the empty text, which counts as unset.
[[nodiscard]] const char* value_of(const Environment& environment, const char* name);

// The number that the environment variable `name` holds as `written`. Throws UsageError that names
// the variable unless it is one from `least` to `most`.
[[nodiscard]] int number_of(const char* name, const char* written, int least, int most);

inline constexpr int kMostRanks = 4096;      // of a communicator
inline constexpr int kMostRanksOfNode = 64;  // of one, on one node

// Returns nothing if it recognises no launcher. Throws UsageError for a variable that is not a
// number, and for numbers that contradict each other.
[[nodiscard]] std::optional<LaunchEnvironment> find_launcher(const Environment& environment);

// Refuses more ranks, `threads` of each launched process, than a communicator has, in all or on a
// node. Throws UsageError.
void require_communicator(const LaunchEnvironment& launch, int threads);

}  // namespace hccl_perf
