// SPDX-License-Identifier: Apache-2.0
// The processors that a node's ranks may use. The number of cores and the scheduling groups
// determine how the ranks wait for each other. The size of the caches determines which operations
// bypass the caches.
#pragma once

#include "base/waiter.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace hccl::node {

// The processors that a rank may run on, the quota of its cgroup, and its scheduling group.
struct CpuAllowance {
  static constexpr std::size_t kWords = 16;  // 1,024 processors
  std::array<std::uint64_t, kWords> mask{};
  std::uint32_t quota_cores = 0;  // cpu.max rounded up; 0: unlimited
  // Identifies the cgroup or autogroup of the process; processes on one host that share a group
  // have equal values. Linux first divides CPU time among these groups, so sched_yield() yields
  // only to threads of the caller's group.
  std::uint64_t scheduling_group = 0;

  [[nodiscard]] static CpuAllowance of_this_thread();
};

struct CoreCount {
  int cores = 1;
  bool exclusive = false;       // every rank can have a core of its own
  bool yields_to_ranks = true;  // sched_yield() gives the core to the node's other ranks

  // Returns how ranks wait for each other.
  [[nodiscard]] WaitLadder ladder() const;
};

// Counts the processors in the union of the masks, limited by the smallest quota. The cores are
// exclusive if there are at least as many cores as ranks, and each mask has at least as many
// processors as there are ranks with that mask.
[[nodiscard]] CoreCount count_cores(std::span<const CpuAllowance> ranks);

// Returns the total size, in bytes, of the last-level caches of the processors that the ranks may
// run on. Reads sysfs; tests pass a different `root`. Returns 32 MiB if sysfs describes no caches.
// Does not use sysconf(), which counts the caches of all sockets even if the process or the virtual
// machine has only one.
[[nodiscard]] std::uint64_t last_level_cache_bytes(
    std::span<const CpuAllowance> ranks, const std::string& root = "/sys/devices/system/cpu");
// Returns how many bytes of cache the ranks can expect to have for themselves: their last-level
// caches, but at most 4 MiB for each of their cores (count_cores()). The limit is needed because a
// virtual machine reports the host's whole last-level cache, which it shares with others, and a
// container with a quota may run on all processors. Without the limit of 4 MiB, ranks on two cores
// of a host with 260 MiB of cache stored large results in the cache, and all-reduces of 16 MiB took
// up to twice as long.
[[nodiscard]] std::uint64_t usable_cache_bytes(std::span<const CpuAllowance> ranks,
                                               const std::string& root = "/sys/devices/system/cpu");

}  // namespace hccl::node
