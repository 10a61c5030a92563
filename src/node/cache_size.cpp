// SPDX-License-Identifier: Apache-2.0
// Caches as sysfs describes them.
#include "node/cache_size.h"

#include "base/text.h"

#include <array>
#include <bit>
#include <fstream>
#include <set>

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

}  // namespace

std::uint64_t last_level_cache_bytes(std::span<const CpuAllowance> ranks, const std::string& root) {
  std::array<std::uint64_t, CpuAllowance::kWords> all{};
  for (const CpuAllowance& rank : ranks) {
    for (std::size_t word = 0; word < all.size(); ++word) all[word] |= rank.mask[word];
  }
  std::uint64_t bytes = 0;
  std::set<std::string> counted;  // by the processors that share the cache
  for (std::size_t word = 0; word < all.size(); ++word) {
    for (std::uint64_t left = all[word]; left != 0; left &= left - 1) {
      const std::size_t processor = word * 64 + static_cast<std::size_t>(std::countr_zero(left));
      const std::string folder = last_level_of(root, processor);
      if (!folder.empty() && counted.insert(read_line(folder + "/shared_cpu_list")).second)
        bytes += parse_bytes(read_line(folder + "/size"));
    }
  }
  return bytes == 0 ? kUsual : bytes;
}

}  // namespace hccl::node
