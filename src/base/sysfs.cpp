// SPDX-License-Identifier: Apache-2.0
#include "base/sysfs.h"

#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace hccl {

std::string read_sysfs(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

cpu_set_t parse_sysfs_list(const std::string& list) {
  cpu_set_t found;
  CPU_ZERO(&found);
  std::istringstream ranges(list);
  for (std::string range; std::getline(ranges, range, ',');) {
    char* rest = nullptr;
    const std::size_t first = std::strtoull(range.c_str(), &rest, 10);
    if (rest == range.c_str()) continue;
    const std::size_t last = *rest == '-' ? std::strtoull(rest + 1, nullptr, 10) : first;
    for (std::size_t number = first; number <= last && number < CPU_SETSIZE; ++number)
      CPU_SET(number, &found);
  }
  return found;
}

}  // namespace hccl
