// SPDX-License-Identifier: Apache-2.0
// Facts about this machine, for the report and for refusing sizes that cannot fit.
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
  int cores = 0;  // this process may run on
  std::uint64_t memory_bytes = 0;
  CgroupLimits limits{};
};

// A variable of the environment.
struct Variable {
  std::string name;
  std::string value;
};

// The HCCL_* variables that are set, by name. A secret's value is replaced by "(set)".
[[nodiscard]] std::vector<Variable> hccl_variables(const char* const* environment);

[[nodiscard]] HostFacts host_facts();

// Memory that can be had without swapping: what the kernel calls available, and no more than the
// cgroup leaves. 0 if unknown.
[[nodiscard]] std::uint64_t available_memory();

}  // namespace hccl_perf
