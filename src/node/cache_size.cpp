// SPDX-License-Identifier: Apache-2.0
// Caches as sysfs describes them.
#include "node/cache_size.h"

#include "base/text.h"

#include <array>
#include <bit>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace hccl::node {
namespace {

constexpr std::uint64_t kUsual = 32ull << 20;

std::string read_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "32768K"
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

// sysfs's folder of the last-level cache of a processor, empty if it tells of none.
std::string last_level_of(const std::string& root, std::size_t processor) {
  std::string last;
  int highest = 0;
  for (int index = 0;; ++index) {
    std::string folder = text(root, "/cpu", processor, "/cache/index", index);
    const std::string level = read_line(folder + "/level");
    if (level.empty()) return last;
    if (const int height = std::atoi(level.c_str()); height > highest) {
      highest = height;
      last = std::move(folder);
    }
  }
}

// Takes the processors of a list such as "0-7,64-71" out of the mask.
void remove_listed(const std::string& list, std::array<std::uint64_t, CpuAllowance::kWords>& mask) {
  std::istringstream ranges(list);
  for (std::string range; std::getline(ranges, range, ',');) {
    char* rest = nullptr;
    const std::size_t first = std::strtoull(range.c_str(), &rest, 10);
    const std::size_t last = *rest == '-' ? std::strtoull(rest + 1, nullptr, 10) : first;
    for (std::size_t cpu = first; cpu <= last && cpu < mask.size() * 64; ++cpu)
      mask[cpu / 64] &= ~(1ull << cpu % 64);
  }
}

}  // namespace

std::uint64_t last_level_cache_bytes(std::span<const CpuAllowance> ranks, const std::string& root) {
  std::array<std::uint64_t, CpuAllowance::kWords> left{};
  for (const CpuAllowance& rank : ranks) {
    for (std::size_t word = 0; word < left.size(); ++word) left[word] |= rank.mask[word];
  }
  std::uint64_t bytes = 0;
  for (std::size_t word = 0; word < left.size(); ++word) {
    while (left[word] != 0) {
      const int bit = std::countr_zero(left[word]);
      left[word] &= left[word] - 1;
      const std::string folder = last_level_of(root, word * 64 + static_cast<std::size_t>(bit));
      if (folder.empty()) continue;
      bytes += parse_bytes(read_line(folder + "/size"));
      remove_listed(read_line(folder + "/shared_cpu_list"), left);  // it counts once
    }
  }
  return bytes == 0 ? kUsual : bytes;
}

}  // namespace hccl::node
