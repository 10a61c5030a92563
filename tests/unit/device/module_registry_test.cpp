// SPDX-License-Identifier: Apache-2.0
// One holder per module and box; a claim ends with its holder.
#include "device/module_registry.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace hccl::device {
namespace {

TEST(ModuleRegistry, OneHolderAtATime) {
  const auto module = static_cast<std::uint32_t>(1'000'000 + getpid());  // nobody else's
  auto claim = claim_module(module);
  ASSERT_TRUE(claim);
  EXPECT_FALSE(claim_module(module));
  claim.reset();
  EXPECT_TRUE(claim_module(module));
}

}  // namespace
}  // namespace hccl::device
