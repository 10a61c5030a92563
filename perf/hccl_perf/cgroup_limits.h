// SPDX-License-Identifier: Apache-2.0
// How much processor time and memory the control groups of this process allow it: what a container
// has of its machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hccl_perf {

struct CgroupLimits {
  std::optional<double> cpus;                 // processor time per time
  std::optional<std::uint64_t> memory_bytes;  // none: unlimited, or no control groups
};

// The tightest limit of this process's group and of those above it, in version 1 or 2. `root` comes
// before /proc and /sys; tests give a folder of their own.
[[nodiscard]] CgroupLimits cgroup_limits(const std::string& root = "");

}  // namespace hccl_perf
