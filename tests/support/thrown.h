// SPDX-License-Identifier: Apache-2.0
// The errors that a test expects to be thrown.
#pragma once

#include "base/error.h"

#include <string>

#include <gtest/gtest.h>

namespace hccl::test {

// Expects any Error that the function throws to have the code `code`. Returns its text, or an empty
// string if nothing is thrown.
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
