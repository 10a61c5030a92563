// SPDX-License-Identifier: Apache-2.0
// Reads the limits and the memory use from the files below /sys/fs/cgroup.
#include "cgroup_limits.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <sstream>
#include <vector>

namespace hccl_perf {
namespace {

// Version 1 of cgroups writes "no limit" as a number close to 2^63. Any value from kNoLimit on
// counts as no limit.
constexpr double kNoLimit = 1e18;

struct Group {
  std::string controllers;  // such as "memory" or "cpu,cpuacct"; empty for version 2, which has all
                            // controllers
  std::string path;

  [[nodiscard]] bool has(const std::string& controller) const {
    return controllers.empty() ||
           ("," + controllers + ",").find("," + controller + ",") != std::string::npos;
  }
};

// Parses lines such as "4:memory:/user.slice" (version 1) or "0::/user.slice" (version 2).
std::vector<Group> groups_of_process(const std::string& root) {
  std::vector<Group> groups;
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    groups.push_back({line.substr(first + 1, second - first - 1), line.substr(second + 1)});
  }
  return groups;
}

// Returns the first two words of a file, or fewer if it is shorter or cannot be read.
std::vector<std::string> words_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> words;
  for (std::string word; words.size() < 2 && file >> word;) words.push_back(word);
  return words;
}

// Returns the number that a word contains. Returns nothing if the word is not a number, such as
// "max", or if the number is not between 0 and kNoLimit: in cgroups, this means "no limit".
std::optional<double> limit_in(const std::string& word) {
  std::istringstream in(word);
  double value = 0;
  if (!(in >> value) || value <= 0 || value >= kNoLimit) return std::nullopt;
  return value;
}

using Read = std::function<std::optional<double>(const std::string& folder)>;

// Returns the smallest value that `read` finds in the directory of the cgroup and in its parents. A
// container often sees its own cgroup as the root, whatever path /proc shows. In that case, only
// the root, which is tried last, has the files.
std::optional<double> tightest(const std::string& top, std::string path, const Read& read) {
  std::optional<double> least;
  while (true) {
    const std::optional<double> found = read(top + path);
    if (found && (!least || *found < *least)) least = found;
    if (path.empty()) return least;
    path.resize(path.find_last_of('/') == std::string::npos ? 0 : path.find_last_of('/'));
  }
}

std::optional<double> memory_in(const std::string& folder) {
  for (const char* name : {"/memory.max", "/memory.limit_in_bytes"}) {
    const auto words = words_of(folder + name);
    if (!words.empty()) return limit_in(words.front());
  }
  return std::nullopt;
}

// Returns the bytes of memory that a cgroup and its children use. Cached files count as free.
double memory_used_in(const std::string& folder) {
  const bool is_version_2 = !words_of(folder + "/memory.current").empty();
  std::ifstream file(folder + (is_version_2 ? "/memory.current" : "/memory.usage_in_bytes"));
  double used = 0;
  file >> used;
  const std::string with_children = is_version_2 ? "" : "total_";  // a prefix in memory.stat
  std::ifstream statistics(folder + "/memory.stat");
  std::string name;
  for (double value = 0; statistics >> name >> value;) {
    if (name == with_children + "inactive_file" || name == with_children + "active_file")
      used -= value;
  }
  return std::max(used, 0.0);
}

std::optional<double> memory_left_in(const std::string& folder) {
  const std::optional<double> limit = memory_in(folder);
  if (!limit) return std::nullopt;
  return std::max(*limit - memory_used_in(folder), 0.0);
}

std::optional<double> cpus_in(const std::string& folder) {
  std::vector<std::string> words = words_of(folder + "/cpu.max");  // such as "200000 100000"
  if (words.empty()) {
    for (const char* name : {"/cpu.cfs_quota_us", "/cpu.cfs_period_us"}) {
      const auto one = words_of(folder + name);
      words.insert(words.end(), one.begin(), one.end());
    }
  }
  if (words.size() != 2) return std::nullopt;
  const std::optional<double> quota = limit_in(words[0]);
  const std::optional<double> period = limit_in(words[1]);
  if (!quota || !period) return std::nullopt;
  return *quota / *period;
}

// Returns the smallest value that `read` finds in this process's cgroups for a controller.
std::optional<double> tightest_of_process(const std::string& root, const char* controller,
                                          const Read& read) {
  std::optional<double> least;
  for (const Group& group : groups_of_process(root)) {
    if (!group.has(controller)) continue;
    const std::string top =
        root + "/sys/fs/cgroup" + (group.controllers.empty() ? "" : "/" + group.controllers);
    const std::optional<double> found = tightest(top, group.path == "/" ? "" : group.path, read);
    if (found && (!least || *found < *least)) least = found;
  }
  return least;
}

std::optional<std::uint64_t> to_bytes(const std::optional<double>& value) {
  return value ? std::optional(static_cast<std::uint64_t>(*value)) : std::nullopt;
}

}  // namespace

CgroupLimits cgroup_limits(const std::string& root) {
  return {tightest_of_process(root, "cpu", cpus_in),
          to_bytes(tightest_of_process(root, "memory", memory_in))};
}

std::optional<std::uint64_t> cgroup_memory_left(const std::string& root) {
  return to_bytes(tightest_of_process(root, "memory", memory_left_in));
}

}  // namespace hccl_perf
