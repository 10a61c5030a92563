// SPDX-License-Identifier: Apache-2.0
// A suite that runs over every transport, and TCP over both families of addresses.
#pragma once

#include "harness.h"

#include <functional>
#include <string>

#include <gtest/gtest.h>

namespace hccl::test {

class EveryWay : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (GetParam().v6 && !has_ipv6()) GTEST_SKIP() << "needs ipv6: no address of it here";
    const std::string why_not = why_missing(GetParam());
    if (!why_not.empty()) GTEST_SKIP() << "needs rdma: " << why_not;
  }
  // Ranks as processes, which must all finish.
  static void run(int ranks, const RankFunction& function) {
    const RankOptions options{.seconds = 120};
    EXPECT_EQ(failures(run_ranks(ranks, function, options)), "");
  }
  // Two ranks, each with an endpoint to the other.
  static void run_pair(const std::function<void(World&, Endpoint&)>& function) {
    run(2, [&](World& world) {
      Member member(world, GetParam());
      const auto endpoint = member.open(1 - world.rank);
      function(world, *endpoint);
    });
  }
};

inline std::string name_of(const testing::TestParamInfo<Way>& info) { return info.param.name; }

}  // namespace hccl::test
