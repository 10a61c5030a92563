// SPDX-License-Identifier: Apache-2.0
// Reads how much memory a process uses.
#pragma once

#include <fstream>
#include <limits>
#include <string>

namespace peers {

// In MiB. A page that several processes have mapped counts as one, divided among them.
struct MemoryUse {
  float pages = 0;
  float page_tables = 0;
};

// Returns the number after `field` in a file of /proc, converted from kB to MiB. Returns 0 if the
// file lacks the field or cannot be read.
inline float read_mib(const char* path, const std::string& field) {
  std::ifstream file(path);
  for (std::string word; file >> word;) {
    float number = 0;
    if (word == field && file >> number) return number / 1024;
    file.clear();
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

// Returns the memory that the calling process uses now.
inline MemoryUse memory_in_use() {
  return {read_mib("/proc/self/smaps_rollup", "Pss:"), read_mib("/proc/self/status", "VmPTE:")};
}

}  // namespace peers
