// SPDX-License-Identifier: Apache-2.0
// Who may spin: affinity masks and quotas.
#include "node/cores.h"

#include <vector>

#include <gtest/gtest.h>

namespace hccl::node {
namespace {

CpuAllowance on(std::uint64_t mask, std::uint32_t quota = 0) {
  CpuAllowance allowance;
  allowance.mask[0] = mask;
  allowance.quota_cores = quota;
  return allowance;
}

TEST(Cores, UnionOfMasks) {
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

TEST(Cores, TheQuotaCounts) {
  const std::vector<CpuAllowance> ranks{on(0xff, 1), on(0xff)};
  EXPECT_EQ(count_cores(ranks).cores, 1);
  EXPECT_FALSE(count_cores(ranks).exclusive);
}

TEST(Cores, ThisThreadMayRunSomewhere) {
  const std::vector<CpuAllowance> me{CpuAllowance::of_this_thread()};
  EXPECT_GE(count_cores(me).cores, 1);
}

}  // namespace
}  // namespace hccl::node
