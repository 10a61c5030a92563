// SPDX-License-Identifier: Apache-2.0
// Tests Deadline::within(), which returns the earlier of a deadline and a time limit.
#include "base/deadline.h"

#include <chrono>

#include <gtest/gtest.h>

namespace hccl {
namespace {

TEST(Deadline, WithinReturnsTheEarlierTime) {
  const auto second = std::chrono::seconds(1);
  const auto hour = std::chrono::hours(1);
  const Deadline later = Deadline::after(hour);
  EXPECT_LT(later.within(second).time(), later.time());
  EXPECT_EQ(later.within(2 * hour).time(), later.time());
  EXPECT_FALSE(Deadline::never().within(hour).is_never());
}

TEST(Deadline, ExpiredStaysExpiredWithinLimit) {
  const Deadline past = Deadline::after(std::chrono::nanoseconds(1));
  while (!past.expired()) continue;
  EXPECT_TRUE(past.within(std::chrono::hours(1)).expired());
}

}  // namespace
}  // namespace hccl
