// SPDX-License-Identifier: Apache-2.0
// How much of an operation's memory the processors' caches can keep, which decides how results are
// stored.
#pragma once

#include "node/cores.h"

#include <cstdint>
#include <span>
#include <string>

namespace hccl::node {

// Bytes of all last-level caches next to the processors the ranks may run on, each counted once, as
// sysfs tells them (under `root`: for tests); 32 MiB where it tells nothing. Not sysconf, which
// counts the caches of all sockets even where the process, or the virtual machine, has one.
[[nodiscard]] std::uint64_t last_level_cache_bytes(
    std::span<const CpuAllowance> ranks, const std::string& root = "/sys/devices/system/cpu");

}  // namespace hccl::node
