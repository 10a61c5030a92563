// SPDX-License-Identifier: Apache-2.0
// Affinity masks, cgroup quotas and scheduling groups.
#include "node/cores.h"

#include <algorithm>
#include <array>
#include <bit>
#include <fstream>
#include <functional>
#include <map>
#include <string>

#include <sched.h>
#include <unistd.h>

namespace hccl::node {
namespace {

// "max 100000" or "150000 100000" (microseconds of each period).
std::uint32_t quota_of(const std::string& path) {
  std::ifstream file(path);
  std::string quota;
  std::uint64_t period = 0;
  if (!(file >> quota >> period) || quota == "max" || period == 0) return 0;
  const std::uint64_t allowed = std::strtoull(quota.c_str(), nullptr, 10);
  return static_cast<std::uint32_t>(std::max<std::uint64_t>(1, (allowed + period - 1) / period));
}

std::uint32_t cgroup_quota() {
  std::uint32_t smallest = quota_of("/sys/fs/cgroup/cpu.max");
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (line.rfind("0::", 0) != 0) continue;
    for (std::string path = line.substr(3); path.size() > 1; path.resize(path.rfind('/'))) {
      const std::uint32_t quota = quota_of("/sys/fs/cgroup" + path + "/cpu.max");
      if (quota != 0 && (smallest == 0 || quota < smallest)) smallest = quota;
    }
  }
  return smallest;
}

// Returns the cgroup at `path` or above it that the cpu controller of the unified hierarchy
// manages. Only groups below the root have cpu.weight. Returns nothing if there is none.
std::string managed_cgroup(std::string path) {
  while (path.starts_with('/')) {
    if (std::ifstream("/sys/fs/cgroup" + path + "/cpu.weight")) return path;
    if (path.size() == 1) break;
    path.resize(std::max<std::size_t>(1, path.rfind('/')));
  }
  return {};
}

// Returns the cgroup namespace of this process, in which paths of cgroups have their meaning.
std::string cgroup_namespace() {
  std::array<char, 64> name{};
  const ssize_t length = readlink("/proc/self/ns/cgroup", name.data(), name.size());
  return {name.data(), static_cast<std::size_t>(std::max<ssize_t>(0, length))};
}

// Returns the cgroup that decides this process's share of the processors. Returns nothing if that
// is the root, in which autogroups decide.
std::string cpu_cgroup() {
  std::ifstream groups("/proc/self/cgroup");
  std::string found;
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    if (controllers.find(",cpu,") != std::string::npos) return path == "/" ? "" : path;
    if (controllers == ",,") found = managed_cgroup(path);
  }
  return found;
}

// Returns the autogroup of this process, such as "/autogroup-7", or nothing where there are none.
// The kernel makes one for each session of processes, unless a cgroup says otherwise.
std::string autogroup() {
  std::ifstream setting("/proc/sys/kernel/sched_autogroup_enabled");
  int enabled = 0;
  std::string name;
  if (setting >> enabled && enabled != 0) std::ifstream("/proc/self/autogroup") >> name;
  return name;
}

std::uint64_t own_scheduling_group() {
  const std::string cgroup = cpu_cgroup();
  return std::hash<std::string>{}(cgroup.empty() ? autogroup() : cgroup_namespace() + cgroup);
}

}  // namespace

CpuAllowance CpuAllowance::of_this_thread() {
  CpuAllowance allowance;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (std::size_t cpu = 0; cpu < std::min<std::size_t>(CPU_SETSIZE, kWords * 64); ++cpu) {
      if (CPU_ISSET(cpu, &set)) allowance.mask[cpu / 64] |= 1ull << (cpu % 64);
    }
  } else {  // more processors than a cpu_set_t holds: assume the first ones
    const auto online = static_cast<std::size_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
    for (std::size_t cpu = 0; cpu < std::min(online, kWords * 64); ++cpu) {
      allowance.mask[cpu / 64] |= 1ull << (cpu % 64);
    }
  }
  allowance.quota_cores = cgroup_quota();
  allowance.scheduling_group = own_scheduling_group();
  return allowance;
}

CoreCount count_cores(std::span<const CpuAllowance> ranks) {
  std::array<std::uint64_t, CpuAllowance::kWords> all{};
  std::map<std::array<std::uint64_t, CpuAllowance::kWords>, int> sharing;
  std::uint32_t quota = 0;
  for (const CpuAllowance& rank : ranks) {
    for (std::size_t word = 0; word < all.size(); ++word) all[word] |= rank.mask[word];
    ++sharing[rank.mask];
    if (rank.quota_cores != 0 && (quota == 0 || rank.quota_cores < quota)) quota = rank.quota_cores;
  }
  const auto count = [](const auto& mask) {
    int bits = 0;
    for (const std::uint64_t word : mask) bits += std::popcount(word);
    return bits;
  };
  CoreCount result;
  result.cores = std::max(1, count(all));
  if (quota != 0) result.cores = std::min(result.cores, static_cast<int>(quota));
  result.exclusive = static_cast<int>(ranks.size()) <= result.cores &&
                     std::all_of(sharing.begin(), sharing.end(), [&](const auto& group) {
                       return group.second <= count(group.first);
                     });
  result.yields_to_ranks = std::ranges::all_of(ranks, [&](const CpuAllowance& rank) {
    return rank.scheduling_group == ranks.front().scheduling_group;
  });
  return result;
}

WaitLadder CoreCount::ladder() const {
  if (exclusive) return WaitLadder::spinning();
  return yields_to_ranks ? WaitLadder::yielding() : WaitLadder::sleeping();
}

}  // namespace hccl::node
