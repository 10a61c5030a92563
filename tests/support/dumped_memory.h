// SPDX-License-Identifier: Apache-2.0
// Inspects the memory of this process that a core dump would contain.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <span>
#include <sstream>
#include <string>

namespace hccl::test {

struct MemoryMap {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  std::string permissions;
  std::string flags;  // two letters each, as in /proc/self/smaps

  [[nodiscard]] bool has(const std::string& flag) const {
    return (' ' + flags + ' ').find(' ' + flag + ' ') != std::string::npos;
  }
};

// Calls `visit` for each mapping of this process.
inline void visit_memory_maps(const std::function<void(const MemoryMap&)>& visit) {
  std::ifstream file("/proc/self/smaps");
  std::stringstream lines;
  lines << file.rdbuf();
  MemoryMap map;
  for (std::string line; std::getline(lines, line);) {
    constexpr const char* kFlags = "VmFlags: ";
    if (line.rfind(kFlags, 0) == 0) {
      map.flags = line.substr(std::string(kFlags).size());
      visit(map);
    } else if (const auto dash = line.find('-');
               dash != std::string::npos && dash < line.find(' ')) {
      map.begin = std::stoull(line.substr(0, dash), nullptr, 16);
      map.end = std::stoull(line.substr(dash + 1), nullptr, 16);
      map.permissions = line.substr(line.find(' ') + 1, 4);
    }
  }
}

// Returns whether a core dump would contain, in private writable memory, `size` consecutive bytes
// whose complements are complement(0), complement(1) and so on. This function never stores these
// bytes itself.
inline bool dump_contains(std::size_t size,
                          const std::function<std::uint8_t(std::size_t)>& complement) {
  constexpr unsigned kAll = 0xFF;
  bool found = false;
  const auto first = static_cast<std::uint8_t>(complement(0) ^ kAll);
  visit_memory_maps([&](const MemoryMap& map) {
    if (found || map.permissions != "rw-p" || map.has("dd")) return;
    const auto* const begin = reinterpret_cast<const std::uint8_t*>(map.begin);
    const auto* const end = reinterpret_cast<const std::uint8_t*>(map.end);
    for (const auto* at = std::find(begin, end, first); at + size <= end;
         at = std::find(at + 1, end, first)) {
      std::size_t same = 0;
      while (same < size && static_cast<std::uint8_t>(at[same] ^ kAll) == complement(same)) ++same;
      if (same == size) found = true;
      if (found) return;
    }
  });
  return found;
}

}  // namespace hccl::test
