// SPDX-License-Identifier: Apache-2.0
// Facts about this machine, for the report and for refusing sizes that cannot fit.
#pragma once

#include <cstdint>
#include <string>

namespace hccl_perf {

struct HostFacts {
  std::string host;
  std::string kernel;
  std::string cpu;
  int cores = 0;  // this process may run on
};

[[nodiscard]] HostFacts host_facts();

// Memory that can be had without swapping: what the kernel calls available, and no more than the
// cgroup leaves. 0 if unknown.
[[nodiscard]] std::uint64_t available_memory();

}  // namespace hccl_perf
