// SPDX-License-Identifier: Apache-2.0
// Tests the time-out and the hang report of a wait.
#include "node/stall_monitor.h"

#include "engine_ranks.h"

#include <chrono>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace hccl::node {
namespace {

using namespace std::chrono_literals;

class StallMonitorTest : public testing::Test {
 protected:
  void check(StallTimer& timer) {
    timer.check([] { return "barrier()"; },
                [this] {
                  ++described_;
                  return "rank 1 has not made this call";
                });
  }

  EngineRanks ranks_{2};
  int described_ = 0;
};

TEST_F(StallMonitorTest, FailsCommunicatorAtTimeout) {
  StallMonitor monitor(ranks_.segment(0), 1ms, 0ms);
  StallTimer timer(monitor);
  std::this_thread::sleep_for(2ms);
  check(timer);
  EXPECT_FALSE(ranks_.segment(0).fault().raised()) << "the time limits have not started";
  timer.start();
  std::this_thread::sleep_for(2ms);
  check(timer);
  ASSERT_TRUE(ranks_.segment(1).fault().raised());
  EXPECT_EQ(ranks_.segment(1).fault().code(), hcclSystemError);
  EXPECT_EQ(
      ranks_.segment(1).fault().text(),
      "barrier(): rank 0 waited 0.001 s: rank 1 has not made this call; raise HCCL_TIMEOUT if such "
      "a wait is expected");
}

TEST_F(StallMonitorTest, ReportsHangOnceForAllWaits) {
  StallMonitor monitor(ranks_.segment(0), 0ms, 1ms);
  for (int wait = 0; wait < 3; ++wait) {
    StallTimer timer(monitor);
    timer.start();
    std::this_thread::sleep_for(2ms);
    check(timer);
    check(timer);
  }
  EXPECT_EQ(described_, 1);
  EXPECT_FALSE(ranks_.segment(0).fault().raised());
}

TEST_F(StallMonitorTest, SleepsUntilNextLimit) {
  StallMonitor monitor(ranks_.segment(0), 0ms, 0ms);
  StallTimer unlimited(monitor);
  unlimited.start();
  EXPECT_GT(unlimited.time_to_check(), 100ms) << "the sleep must be bounded";
  EXPECT_LT(unlimited.time_to_check(), 1min);
  monitor.wait_limit().set(10);
  StallTimer limited(monitor);
  limited.start();
  EXPECT_LE(limited.time_to_check(), 11ms);
}

}  // namespace
}  // namespace hccl::node
