// SPDX-License-Identifier: Apache-2.0
// Reads affinity masks, cgroup quotas, scheduling groups, and the caches that sysfs describes.
#include "node/cpu_topology.h"

#include "base/sysfs.h"
#include "base/text.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <sched.h>
#include <unistd.h>

namespace hccl::node {
namespace {

// Returns the number of processors that a cgroup's cpu.max allows, rounded up; 0 if there is no
// limit or no such file. The file holds the quota and the period in microseconds: "max 100000" or
// "150000 100000".
std::uint32_t quota_of(const std::string& path) {
  std::ifstream file(path);
  std::string quota;
  std::uint64_t period = 0;
  if (!(file >> quota >> period) || quota == "max" || period == 0) return 0;
  const std::uint64_t allowed = std::strtoull(quota.c_str(), nullptr, 10);
  return static_cast<std::uint32_t>(std::max<std::uint64_t>(1, (allowed + period - 1) / period));
}

// Returns the paths of this process's cgroup and its ancestors in the unified hierarchy. The last
// path, that of the root, is empty.
std::vector<std::string> unified_cgroups() {
  std::vector<std::string> found;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (!line.starts_with("0::/")) continue;
    for (std::string path = line.substr(3); path.size() > 1; path.resize(path.rfind('/')))
      found.push_back(path);
  }
  found.emplace_back();
  return found;
}

std::uint32_t cgroup_quota() {
  std::uint32_t smallest = 0;
  for (const std::string& path : unified_cgroups()) {
    const std::uint32_t quota = quota_of("/sys/fs/cgroup" + path + "/cpu.max");
    if (quota != 0 && (smallest == 0 || quota < smallest)) smallest = quota;
  }
  return smallest;
}

// Returns the name of this process's cgroup namespace. The process's cgroup paths are relative to
// the root of that namespace.
std::string cgroup_namespace() {
  std::array<char, 64> name{};
  const ssize_t length = readlink("/proc/self/ns/cgroup", name.data(), name.size());
  return {name.data(), static_cast<std::size_t>(std::max<ssize_t>(0, length))};
}

// Returns the name of the cgroup that determines this process's share of processor time, or an
// empty string if that is the root cgroup, in which autogroups determine the share.
std::string cpu_cgroup() {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "1:cpu,cpuacct:/path"
    const std::size_t begin = line.find(':') + 1;
    const std::size_t path = line.find(":/", begin);
    if (path == std::string::npos) continue;
    const std::string controllers = text(",", line.substr(begin, path - begin), ",");
    if (controllers.find(",cpu,") == std::string::npos) continue;
    return line.ends_with(":/") ? "" : line.substr(path);
  }
  // A cgroup has this file if the cpu controller is enabled for it, unless it is the root of the
  // hierarchy. The cgroup that a container sees as the root is not the root of the hierarchy, so it
  // may have the file too.
  for (const std::string& path : unified_cgroups()) {
    if (std::ifstream("/sys/fs/cgroup" + path + "/cpu.weight")) return "unified:" + path;
  }
  return {};
}

// Returns the autogroup of this process, such as "/autogroup-7", or an empty string if autogroups
// are disabled. The kernel creates an autogroup for each session (setsid). A cgroup below the root
// takes precedence over the autogroup.
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

constexpr std::uint64_t kUsualCacheBytes = 32ull << 20;
constexpr std::uint64_t kMostUnsharedBytes = 32ull << 20;  // larger caches count in part
constexpr std::uint64_t kProcessorShare = 4ull << 20;      // of a larger cache

// Parses a size such as "32768K".
std::uint64_t parse_bytes(const std::string& size) {
  char* unit = nullptr;
  const std::uint64_t number = std::strtoull(size.c_str(), &unit, 10);
  switch (*unit) {
    case 'K':
      return number << 10;
    case 'M':
      return number << 20;
    case 'G':
      return number << 30;
    default:
      return number;
  }
}

// Returns the sysfs directory of a processor's last-level cache, or an empty string if there is
// none.
std::string last_level_of(const std::string& root, std::size_t processor) {
  std::string last;
  int highest = 0;
  for (int index = 0;; ++index) {
    std::string folder = text(root, "/cpu", processor, "/cache/index", index);
    const std::string level = read_sysfs(folder + "/level");
    if (level.empty()) return last;
    if (const int height = std::atoi(level.c_str()); height > highest) {
      highest = height;
      last = std::move(folder);
    }
  }
}

using CpuMask = std::array<std::uint64_t, CpuAllowance::kWords>;

// Removes the processors in a list such as "0-7,64-71" from the mask, and returns how many were
// removed. An empty list stands for all processors.
std::uint64_t remove_listed(const std::string& list, CpuMask& mask) {
  static_assert(CpuAllowance::kWords * 64 <= CPU_SETSIZE);
  const cpu_set_t listed = parse_sysfs_list(list);
  std::uint64_t removed = 0;
  for (std::size_t cpu = 0; cpu < mask.size() * 64; ++cpu) {
    const std::uint64_t bit = 1ull << cpu % 64;
    if ((mask[cpu / 64] & bit) == 0 || (!list.empty() && !CPU_ISSET(cpu, &listed))) continue;
    mask[cpu / 64] &= ~bit;
    ++removed;
  }
  return removed;
}

// Returns the processors that at least one rank may run on.
CpuMask all_processors(std::span<const CpuAllowance> ranks) {
  CpuMask all{};
  for (const CpuAllowance& rank : ranks) {
    for (std::size_t word = 0; word < all.size(); ++word) all[word] |= rank.mask[word];
  }
  return all;
}

// How much of some last-level caches counts, in bytes.
struct UsableCaches {
  std::uint64_t total = 0;
  std::uint64_t most_per_processor = 0;
};

// Counts the last-level caches of the processors that the ranks may run on, each cache once. If
// sysfs describes none, counts one cache of kUsualCacheBytes. Does not use sysconf(), which counts
// the caches of all sockets even if the process or the virtual machine has only one.
UsableCaches count_caches(std::span<const CpuAllowance> ranks, const std::string& root) {
  CpuMask left = all_processors(ranks);
  UsableCaches caches;
  for (std::size_t word = 0; word < left.size(); ++word) {
    while (left[word] != 0) {
      const auto bit = static_cast<std::size_t>(std::countr_zero(left[word]));
      const std::string folder = last_level_of(root, word * 64 + bit);
      const std::uint64_t bytes = folder.empty() ? 0 : parse_bytes(read_sysfs(folder + "/size"));
      if (bytes == 0) {
        left[word] &= left[word] - 1;
        continue;
      }
      const std::uint64_t sharers = remove_listed(read_sysfs(folder + "/shared_cpu_list"), left);
      left[word] &= ~(1ull << bit);  // even if the list lacks the processor itself
      const bool is_shared = bytes > kMostUnsharedBytes;
      const std::uint64_t most = is_shared ? kProcessorShare : bytes;
      caches.total += is_shared ? std::min(bytes, sharers * kProcessorShare) : bytes;
      caches.most_per_processor = std::max(caches.most_per_processor, most);
    }
  }
  return caches.total == 0 ? UsableCaches{kUsualCacheBytes, kUsualCacheBytes} : caches;
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
  } else {  // too many processors for a cpu_set_t: assume all that are online
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
  std::map<CpuMask, int> sharing;
  std::uint32_t quota = 0;
  for (const CpuAllowance& rank : ranks) {
    ++sharing[rank.mask];
    if (rank.quota_cores != 0 && (quota == 0 || rank.quota_cores < quota)) quota = rank.quota_cores;
  }
  const auto count = [](const auto& mask) {
    int bits = 0;
    for (const std::uint64_t word : mask) bits += std::popcount(word);
    return bits;
  };
  CoreCount result;
  result.cores = std::max(1, count(all_processors(ranks)));
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

std::uint64_t usable_cache_bytes(std::span<const CpuAllowance> ranks, std::size_t nodes,
                                 const std::string& root) {
  const UsableCaches caches = count_caches(ranks, root);
  const auto cores = static_cast<std::uint64_t>(count_cores(ranks).cores);
  const std::uint64_t busy = std::min<std::uint64_t>(cores, ranks.size());
  return std::min(caches.total / nodes, busy * caches.most_per_processor);
}

bool share_last_level_cache(std::span<const CpuAllowance> ranks, const std::string& root) {
  CpuMask others = all_processors(ranks);
  std::size_t word = 0;
  while (word < others.size() && others[word] == 0) ++word;
  if (word == others.size()) return true;
  const auto first = word * 64 + static_cast<std::size_t>(std::countr_zero(others[word]));
  const std::string folder = last_level_of(root, first);
  if (folder.empty()) return true;
  remove_listed(read_sysfs(folder + "/shared_cpu_list"), others);
  return std::ranges::all_of(others, [](std::uint64_t bits) { return bits == 0; });
}

}  // namespace hccl::node
