// SPDX-License-Identifier: Apache-2.0
// The CPU and memory limits that cgroups, such as those of a container, set for this process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hccl_perf {

// A value is empty if there is no limit, or if the process has no cgroups.
struct CgroupLimits {
  std::optional<double> cpus;  // CPU time per elapsed time
  std::optional<std::uint64_t> memory_bytes;
};

// Returns the tightest limits that this process's cgroups and their parents set. Supports versions
// 1 and 2 of cgroups. `root` is prepended to /proc and /sys, so that tests can pass their own
// directory.
[[nodiscard]] CgroupLimits cgroup_limits(const std::string& root = "");

// Returns the bytes of memory that these cgroups still allow the process to use. Cached files count
// as free. Returns nothing if there is no limit.
[[nodiscard]] std::optional<std::uint64_t> cgroup_memory_left(const std::string& root = "");

}  // namespace hccl_perf
