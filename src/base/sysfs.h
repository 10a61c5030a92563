// SPDX-License-Identifier: Apache-2.0
// Reads descriptions of the hardware from sysfs.
#pragma once

#include <string>

#include <sched.h>

namespace hccl {

// Returns the first line of a file, or an empty string if the file cannot be read.
[[nodiscard]] std::string read_sysfs(const std::string& path);

// Returns the numbers in a list such as "0-7,64-71", which may be numbers of processors or of NUMA
// nodes. Ignores numbers that are not less than CPU_SETSIZE (1,024).
[[nodiscard]] cpu_set_t parse_sysfs_list(const std::string& list);

}  // namespace hccl
