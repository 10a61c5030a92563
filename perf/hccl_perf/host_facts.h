// SPDX-License-Identifier: Apache-2.0
// Facts about this machine, for the report and for rejecting sizes that do not fit into memory.
#pragma once

#include "cgroup_limits.h"

#include <cstdint>
#include <string>
#include <vector>

namespace hccl_perf {

struct HostFacts {
  std::string host;
  std::string kernel;
  std::string cpu;
  int cores = 0;  // number of cores that this process may run on
  std::uint64_t memory_bytes = 0;
  CgroupLimits limits{};
};

// An environment variable.
struct Variable {
  std::string name;
  std::string value;
};

// Returns the HCCL_* variables that are set, sorted by name. The value of HCCL_SECRET is replaced
// with "(set)".
[[nodiscard]] std::vector<Variable> hccl_variables(const char* const* environment);

[[nodiscard]] HostFacts host_facts();

// Returns the bytes of memory that are available without swapping: the kernel's estimate, or the
// memory left under the cgroup's limit if that is less. Returns 0 if the kernel gives no estimate.
[[nodiscard]] std::uint64_t available_memory();

}  // namespace hccl_perf
