// SPDX-License-Identifier: Apache-2.0
// How many iterations --min-time makes.
#include "measurement.h"

#include <gtest/gtest.h>

namespace hccl_perf {
namespace {

TEST(IterationsFor, ExtrapolatesWithAMargin) {
  EXPECT_EQ(iterations_for(1.0, 20, 0.1), 220U);
  EXPECT_EQ(iterations_for(0.3, 100, 0.2), 165U);
}

TEST(IterationsFor, AlwaysGrowsButNotWithoutBounds) {
  EXPECT_GT(iterations_for(0.1, 20, 0.099999), 20U);
  EXPECT_EQ(iterations_for(10.0, 20, 0.0), 20000U);
  EXPECT_EQ(iterations_for(10.0, 20, 1e-9), 20000U);
}

}  // namespace
}  // namespace hccl_perf
