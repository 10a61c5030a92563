// SPDX-License-Identifier: Apache-2.0
// Tests how ranks wait, which depends on affinity masks, quotas and scheduling groups. Also tests
// the sizes of last-level caches, which are read from files laid out as in /sys.
#include "node/cpu_topology.h"

#include "children.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

namespace hccl::node {
namespace {

CpuAllowance on(std::uint64_t mask, std::uint32_t quota = 0) {
  CpuAllowance allowance;
  allowance.mask[0] = mask;
  allowance.quota_cores = quota;
  return allowance;
}

TEST(Cores, CountsUnionOfMasks) {
  const std::vector<CpuAllowance> ranks{on(0b0001), on(0b0110)};
  EXPECT_EQ(count_cores(ranks).cores, 3);
  EXPECT_TRUE(count_cores(ranks).exclusive);
}

TEST(Cores, MoreRanksThanCoresMayNotSpin) {
  const std::vector<CpuAllowance> ranks(3, on(0b11));
  EXPECT_EQ(count_cores(ranks).cores, 2);
  EXPECT_FALSE(count_cores(ranks).exclusive);
}

TEST(Cores, RanksPinnedTogetherMayNotSpin) {
  const std::vector<CpuAllowance> ranks{on(0b01), on(0b01), on(0b1110)};
  EXPECT_EQ(count_cores(ranks).cores, 4);
  EXPECT_FALSE(count_cores(ranks).exclusive);
}

TEST(Cores, QuotaLimitsCores) {
  const std::vector<CpuAllowance> ranks{on(0xff, 1), on(0xff)};
  EXPECT_EQ(count_cores(ranks).cores, 1);
  EXPECT_FALSE(count_cores(ranks).exclusive);
}

TEST(Cores, ThisThreadHasACore) {
  const std::vector<CpuAllowance> me{CpuAllowance::of_this_thread()};
  EXPECT_GE(count_cores(me).cores, 1);
}

TEST(Cores, RanksOfOneSchedulingGroupYieldToEachOther) {
  std::vector<CpuAllowance> ranks(3, on(0b11));
  EXPECT_TRUE(count_cores(ranks).yields_to_ranks);
  EXPECT_EQ(count_cores(ranks).ladder().name, std::string("yielding"));
  ranks[2].scheduling_group = ranks[0].scheduling_group + 1;
  EXPECT_FALSE(count_cores(ranks).yields_to_ranks);
  EXPECT_EQ(count_cores(ranks).ladder().name, std::string("sleeping"));
}

TEST(Cores, RanksWithOwnCoresSpinInAnyGroup) {
  std::vector<CpuAllowance> ranks(2, on(0b11));
  ranks[1].scheduling_group = ranks[0].scheduling_group + 1;
  EXPECT_EQ(count_cores(ranks).ladder().name, std::string("spinning"));
}

// A new session must have a scheduling group of its own if the kernel creates autogroups and the
// process is in the root control group. Otherwise, its group must stay the same.
TEST(Cores, SessionsAreSchedulingGroupsWithAutogroup) {
  int enabled = 0;
  std::ifstream("/proc/sys/kernel/sched_autogroup_enabled") >> enabled;
  bool in_root = true;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (line.find(":cpu:") != std::string::npos || line.find(":cpu,") != std::string::npos)
      in_root = line.ends_with(":/");
  }
  if (std::ifstream("/sys/fs/cgroup/cpu.weight")) in_root = false;
  const std::uint64_t here = CpuAllowance::of_this_thread().scheduling_group;
  EXPECT_EQ(CpuAllowance::of_this_thread().scheduling_group, here);
  const int status = hccl::test::status_in_child([&] {
    setsid();
    return CpuAllowance::of_this_thread().scheduling_group == here;
  });
  EXPECT_EQ(status, enabled != 0 && in_root ? 1 : 0);
}

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
    return usable(ranks);
  }
  [[nodiscard]] std::uint64_t usable(std::span<const CpuAllowance> ranks,
                                     std::size_t nodes = 1) const {
    return usable_cache_bytes(ranks, nodes, root_.string());
  }
  [[nodiscard]] bool is_shared_by(std::uint64_t first, std::uint64_t second) const {
    std::vector<CpuAllowance> ranks(2);
    ranks[0].mask[0] = first;
    ranks[1].mask[0] = second;
    return share_last_level_cache(ranks, root_.string());
  }
  // Returns `count` ranks that may run on the processors in the mask.
  static std::vector<CpuAllowance> ranks_on(std::size_t count, std::uint64_t mask) {
    CpuAllowance rank;
    rank.mask[0] = mask;
    return std::vector<CpuAllowance>(count, rank);
  }

 private:
  fs::path root_;
};

TEST_F(CacheSize, CountsSharedCacheOnce) {
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

TEST_F(CacheSize, TellsWhetherAllProcessorsShareTheLastLevel) {
  EXPECT_TRUE(is_shared_by(0b0001, 0b0100)) << "no cache is described";
  for (int cpu = 0; cpu < 4; ++cpu) {
    add(cpu, 0, "1", "32K", std::to_string(cpu).c_str());
    add(cpu, 1, "3", "32768K", cpu < 2 ? "0-1" : "2-3");
  }
  EXPECT_TRUE(is_shared_by(0b0001, 0b0010));
  EXPECT_TRUE(is_shared_by(0b1100, 0b1100));
  EXPECT_FALSE(is_shared_by(0b0001, 0b0100));
  EXPECT_FALSE(is_shared_by(0b1111, 0b1111));
}

TEST_F(CacheSize, TakesLastExistingLevel) {
  add(0, 0, "1", "32K", "0");
  add(0, 1, "2", "1M", "0");
  add(1, 0, "1", "32K", "1");
  add(1, 1, "2", "1M", "1");
  EXPECT_EQ(of(0b11), 2u << 20);
}

TEST_F(CacheSize, UsesDefaultIfUnknown) {
  EXPECT_EQ(of(0b11), 32u << 20);
  add(0, 0, "3", "rubbish", "0");
  EXPECT_EQ(of(0b11), 32u << 20);
}

TEST_F(CacheSize, IsUsableUpToFourMebibytesForEachBusyCoreOfSocket) {
  for (int cpu = 0; cpu < 4; ++cpu) add(cpu, 0, "3", "266240K", "0-3");
  std::vector<CpuAllowance> ranks(2);
  ranks[0].mask[0] = 0b0001;
  EXPECT_EQ(usable(ranks), 4u << 20);
  ranks[1].mask[0] = 0b0011;
  EXPECT_EQ(usable(ranks), 8u << 20);
  ranks[0].mask[0] = ranks[1].mask[0] = 0b1111;
  EXPECT_EQ(usable(ranks), 8u << 20);
  ranks.resize(8, ranks[0]);
  EXPECT_EQ(usable(ranks), 16u << 20);
  for (CpuAllowance& rank : ranks) rank.quota_cores = 3;
  EXPECT_EQ(usable(ranks), 12u << 20);
}

TEST_F(CacheSize, IsUsableAsAWholeIfItServesGroupOfCores) {
  for (int cpu = 0; cpu < 4; ++cpu) add(cpu, 0, "3", "32768K", cpu < 2 ? "0-1" : "2-3");
  std::vector<CpuAllowance> ranks(1);
  ranks[0].mask[0] = 0b0011;
  EXPECT_EQ(usable(ranks), 32u << 20);
  ranks.resize(2, ranks[0]);
  EXPECT_EQ(usable(ranks), 32u << 20);
  ranks[1].mask[0] = 0b1100;
  EXPECT_EQ(usable(ranks), 64u << 20);
  ranks[0].quota_cores = 1;
  EXPECT_EQ(usable(ranks), 32u << 20);
}

TEST_F(CacheSize, CountsOnlyCachesOfBusyCores) {
  for (int cpu = 0; cpu < 4; ++cpu) add(cpu, 0, "3", "16384K", cpu < 2 ? "0-1" : "2-3");
  EXPECT_EQ(usable(ranks_on(1, 0b1111)), 16u << 20);
  EXPECT_EQ(usable(ranks_on(2, 0b1111)), 32u << 20);
  EXPECT_EQ(usable(ranks_on(4, 0b1111)), 32u << 20);
}

TEST_F(CacheSize, LimitsCachesThatAreJustTooLargeForGroupOfCores) {
  for (int cpu = 0; cpu < 4; ++cpu) add(cpu, 0, "3", "32772K", "0-3");
  EXPECT_EQ(usable(ranks_on(1, 0b1111)), 4u << 20);
}

TEST_F(CacheSize, LimitsEachCacheByItself) {
  for (int cpu = 0; cpu < 4; ++cpu)
    add(cpu, 0, "3", cpu < 2 ? "98304K" : "32768K", cpu < 2 ? "0-1" : "2-3");
  EXPECT_EQ(usable(ranks_on(2, 0b0011)), 8u << 20);
  EXPECT_EQ(usable(ranks_on(2, 0b1100)), 32u << 20);
  EXPECT_EQ(usable(ranks_on(2, 0b1111)), 40u << 20);
}

TEST_F(CacheSize, IsDividedAmongNodesThatShareProcessors) {
  for (int cpu = 0; cpu < 8; ++cpu) add(cpu, 0, "3", "266240K", "0-7");
  EXPECT_EQ(usable(ranks_on(2, 0b1111'1111), 4), 8u << 20);  // each rank has a processor
  EXPECT_EQ(usable(ranks_on(8, 0b1111'1111), 4), 8u << 20);
  EXPECT_EQ(usable(ranks_on(2, 0b0000'0011), 2), 4u << 20);
}

TEST_F(CacheSize, WithoutListOfSharersServesAllProcessors) {
  for (int cpu = 0; cpu < 4; ++cpu) add(cpu, 0, "3", "32768K", "");
  EXPECT_EQ(usable(ranks_on(4, 0b1111)), 32u << 20);
}

TEST_F(CacheSize, OfThisMachineIsPlausible) {
  const std::vector<CpuAllowance> me{CpuAllowance::of_this_thread()};
  EXPECT_GE(usable_cache_bytes(me), 64u << 10);
}

}  // namespace
}  // namespace hccl::node
