// SPDX-License-Identifier: Apache-2.0
// Which caches count, on machines drawn in a folder.
#include "node/cache_size.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace hccl::node {
namespace {

namespace fs = std::filesystem;

class CacheSize : public testing::Test {
 public:
  ~CacheSize() override { fs::remove_all(root_); }

 protected:
  CacheSize() {
    std::string name = (fs::temp_directory_path() / "hccl-caches-XXXXXX").string();
    root_ = mkdtemp(name.data());
  }

  void add(int cpu, int index, const char* level, const char* size, const char* sharers) {
    const fs::path folder =
        root_ / ("cpu" + std::to_string(cpu)) / "cache" / ("index" + std::to_string(index));
    fs::create_directories(folder);
    std::ofstream(folder / "level") << level << '\n';
    std::ofstream(folder / "size") << size << '\n';
    std::ofstream(folder / "shared_cpu_list") << sharers << '\n';
  }

  [[nodiscard]] std::uint64_t of(std::uint64_t first, std::uint64_t second = 0) const {
    std::vector<CpuAllowance> ranks(2);
    ranks[0].mask[0] = first;
    ranks[1].mask[0] = second;
    return last_level_cache_bytes(ranks, root_.string());
  }

 private:
  fs::path root_;
};

TEST_F(CacheSize, CountsASharedCacheOnce) {
  for (int cpu = 0; cpu < 4; ++cpu) {
    add(cpu, 0, "1", "32K", "0");
    add(cpu, 1, "2", "512K", "0");
    add(cpu, 2, "3", "32768K", cpu < 2 ? "0-1" : "2-3");
  }
  EXPECT_EQ(of(0b0011), 32u << 20);
  EXPECT_EQ(of(0b0001, 0b0010), 32u << 20);
  EXPECT_EQ(of(0b0001, 0b0100), 64u << 20);
  EXPECT_EQ(of(0b1111), 64u << 20);
}

TEST_F(CacheSize, TakesTheLastLevelThereIs) {
  add(0, 0, "1", "32K", "0");
  add(0, 1, "2", "1M", "0");
  add(1, 0, "1", "32K", "1");
  add(1, 1, "2", "1M", "1");
  EXPECT_EQ(of(0b11), 2u << 20);
}

TEST_F(CacheSize, GuessesWhereNothingIsTold) {
  EXPECT_EQ(of(0b11), 32u << 20);
  add(0, 0, "3", "rubbish", "0");
  EXPECT_EQ(of(0b11), 32u << 20);
}

TEST_F(CacheSize, OfThisMachineIsPlausible) {
  const std::vector<CpuAllowance> me{CpuAllowance::of_this_thread()};
  EXPECT_GE(last_level_cache_bytes(me), 64u << 10);
}

}  // namespace
}  // namespace hccl::node
