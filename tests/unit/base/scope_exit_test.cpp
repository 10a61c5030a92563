// SPDX-License-Identifier: Apache-2.0
// Tests when a ScopeExit runs its action.
#include "base/scope_exit.h"

#include <stdexcept>

#include <gtest/gtest.h>

namespace hccl {
namespace {

TEST(ScopeExit, RunsActionOnceOnAnyExit) {
  int runs = 0;
  {
    const ScopeExit at_end([&] { ++runs; });
  }
  EXPECT_EQ(runs, 1);
  const auto leave_by_exception = [&] {
    const ScopeExit at_end([&] { ++runs; });
    throw std::runtime_error("left");
  };
  EXPECT_THROW(leave_by_exception(), std::runtime_error);
  EXPECT_EQ(runs, 2);
}

TEST(ScopeExit, RunsNothingAfterDismissal) {
  int runs = 0;
  {
    ScopeExit unless_done([&] { ++runs; });
    unless_done.dismiss();
  }
  EXPECT_EQ(runs, 0);
}

}  // namespace
}  // namespace hccl
