// SPDX-License-Identifier: Apache-2.0
// Reads facts from system calls, /proc, cgroups and environment variables.
#include "host_facts.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include <sched.h>
#include <sys/utsname.h>

namespace hccl_perf {
namespace {

// Returns the value from a file's first line "<key>...: value", or an empty string if there is
// none.
std::string value_in(const char* path, const std::string& key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t colon = line.find(':');
    if (line.rfind(key, 0) != 0 || colon == std::string::npos) continue;
    const std::size_t start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string::npos ? "" : line.substr(start);
  }
  return {};
}

// Returns an entry of /proc/meminfo in kB, or 0 if there is no such entry.
std::uint64_t kilobytes_of(const std::string& key) {
  return std::strtoull(value_in("/proc/meminfo", key).c_str(), nullptr, 10);
}

}  // namespace

HostFacts host_facts() {
  HostFacts facts;
  utsname system{};
  if (uname(&system) == 0) {
    facts.host = system.nodename;
    facts.kernel = std::string(system.sysname) + ' ' + system.release + ' ' + system.machine;
  }
  facts.cpu = value_in("/proc/cpuinfo", "model name");
  if (facts.cpu.empty()) facts.cpu = system.machine;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) facts.cores = CPU_COUNT(&allowed);
  facts.memory_bytes = kilobytes_of("MemTotal") * 1024;
  facts.limits = cgroup_limits();
  return facts;
}

std::vector<Variable> hccl_variables(const char* const* environment) {
  std::vector<Variable> found;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string written = *environment;
    const std::size_t equals = written.find('=');
    if (!written.starts_with("HCCL_") || equals == std::string::npos) continue;
    const std::string name = written.substr(0, equals);
    found.push_back({name, name == "HCCL_SECRET" ? "(set)" : written.substr(equals + 1)});
  }
  std::sort(found.begin(), found.end(),
            [](const Variable& one, const Variable& other) { return one.name < other.name; });
  return found;
}

std::uint64_t available_memory() {
  return std::min(kilobytes_of("MemAvailable") * 1024, cgroup_memory_left().value_or(UINT64_MAX));
}

}  // namespace hccl_perf
