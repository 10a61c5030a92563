// SPDX-License-Identifier: Apache-2.0
// The processors of a node's ranks: how many cores the ranks really have and whether the scheduler
// lets them take turns, which decides how they wait for each other, and the caches of these cores.
#pragma once

#include "base/waiter.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace hccl::node {

// The processors a rank may run on, its cgroup's quota, and the group it is scheduled in.
struct CpuAllowance {
  static constexpr std::size_t kWords = 16;  // 1,024 processors
  std::array<std::uint64_t, kWords> mask{};
  std::uint32_t quota_cores = 0;  // cpu.max rounded up; 0: unlimited
  // Identifies the cgroup or autogroup of the process. Processes on one host have equal values if
  // they share a group. Linux shares processors out between such groups first, so sched_yield()
  // gives way to threads of the caller's group alone.
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

// Returns the number of processors in the union of the masks, at most the smallest quota. Ranks
// have cores of their own only if every mask has a processor for each rank that it is the mask of.
[[nodiscard]] CoreCount count_cores(std::span<const CpuAllowance> ranks);

// Returns the bytes of all last-level caches next to the processors that the ranks may run on, each
// counted once: above a share of it, operations store past the caches. Reads sysfs (under `root`,
// for tests); 32 MiB if it has none. sysconf() would count the caches of all sockets even where the
// process, or the virtual machine, has one.
[[nodiscard]] std::uint64_t last_level_cache_bytes(
    std::span<const CpuAllowance> ranks, const std::string& root = "/sys/devices/system/cpu");

}  // namespace hccl::node
