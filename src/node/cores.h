// SPDX-License-Identifier: Apache-2.0
// How many cores the ranks of a node really have, which decides whether they may spin.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace hccl::node {

// The processors a rank may run on, and its cgroup's quota.
struct CpuAllowance {
  static constexpr std::size_t kWords = 16;  // 1,024 processors
  std::array<std::uint64_t, kWords> mask{};
  std::uint32_t quota_cores = 0;  // cpu.max rounded up; 0: unlimited

  [[nodiscard]] static CpuAllowance of_this_thread();
};

struct CoreCount {
  int cores = 1;
  bool exclusive = false;  // every rank can have a core of its own
};

// Union of the masks, limited by the smallest quota; ranks pinned together on one core are not
// exclusive.
[[nodiscard]] CoreCount count_cores(std::span<const CpuAllowance> ranks);

}  // namespace hccl::node
