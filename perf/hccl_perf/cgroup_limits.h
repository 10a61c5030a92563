// SPDX-License-Identifier: Apache-2.0
// The processor time and the memory that the control groups of this process allow, such as those of
// a container.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hccl_perf {

struct CgroupLimits {
  std::optional<double> cpus;                 // processor time per elapsed time; empty if unlimited
  std::optional<std::uint64_t> memory_bytes;  // empty if unlimited or without control groups
};

// Returns the tightest limits of this process's group and its parents, in version 1 or 2. `root` is
// prepended to /proc and /sys; tests pass a folder of their own.
[[nodiscard]] CgroupLimits cgroup_limits(const std::string& root = "");

}  // namespace hccl_perf
