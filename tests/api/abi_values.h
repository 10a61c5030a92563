// SPDX-License-Identifier: Apache-2.0
// A number that a header defines, and the number that existing programs were compiled with.
#pragma once

#include <cstdint>

#include <gtest/gtest.h>

namespace hccl::test {

struct Value {
  const char* name;
  std::int64_t actual;
  std::int64_t expected;
};

}  // namespace hccl::test
