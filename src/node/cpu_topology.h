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

// Returns how many bytes of cache the ranks of a node can expect to have for themselves. `nodes`:
// the number of nodes that share the processors. Reads sysfs; tests pass a different `root`.
//
// Only as many processors count as there are ranks, because idle processors do not use their share
// of a cache, and as count_cores() returns, because a container with a quota may run on all
// processors. A last-level cache of up to 32 MiB counts in full: such a cache usually serves a few
// cores. A larger one counts with 4 MiB for each processor: such a cache usually serves a socket,
// and a virtual machine reports all of it although it shares it with others. This is a heuristic,
// and too cautious for the large caches of a few cores that some processors have.
//
// With 300 MiB instead of 32 MiB, all-reduces of 16 MiB among eight ranks took 1.8 to 2 times as
// long on a socket with such a cache. With 8 MiB instead of 32 MiB, those of 1 MiB took twice as
// long on a processor whose groups of cores have 32 MiB each.
[[nodiscard]] std::uint64_t usable_cache_bytes(std::span<const CpuAllowance> ranks,
                                               std::size_t nodes = 1,
                                               const std::string& root = "/sys/devices/system/cpu");

// Returns whether all processors of the ranks share one last-level cache, or sysfs describes none.
[[nodiscard]] bool share_last_level_cache(std::span<const CpuAllowance> ranks,
                                          const std::string& root = "/sys/devices/system/cpu");

}  // namespace hccl::node
