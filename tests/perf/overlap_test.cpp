// SPDX-License-Identifier: Apache-2.0
// How much of a call counts as hidden.
#include "overlap.h"

#include <gtest/gtest.h>

namespace hccl_perf {
namespace {

TEST(OverlapPercent, IsThePartOfTheCallThatTheOverallTimeDoesNotShow) {
  EXPECT_DOUBLE_EQ(overlap_percent(10, 10, 20), 0);    // one after the other
  EXPECT_DOUBLE_EQ(overlap_percent(10, 10, 10), 100);  // both at once
  EXPECT_DOUBLE_EQ(overlap_percent(10, 8, 13), 50);
}

TEST(OverlapPercent, StaysWithin0And100) {
  EXPECT_DOUBLE_EQ(overlap_percent(10, 10, 35), 0) << "computing and calling disturb each other";
  EXPECT_DOUBLE_EQ(overlap_percent(10, 10, 9), 100);
  EXPECT_DOUBLE_EQ(overlap_percent(0, 10, 10), 0) << "nothing to hide";
}

}  // namespace
}  // namespace hccl_perf
