// SPDX-License-Identifier: Apache-2.0
// The errors that a test expects.
#pragma once

#include "base/error.h"

#include <string>

#include <gtest/gtest.h>

namespace hccl::test {

// Returns the text of the Error that the function throws, whose code must be `code`; empty if it
// throws none.
template <class Function>
[[nodiscard]] std::string error_of(hcclResult_t code, const Function& function) {
  try {
    static_cast<void>(function());
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "";
}

}  // namespace hccl::test
