// SPDX-License-Identifier: Apache-2.0
// Checks thrown errors.
#pragma once

#include "base/error.h"

#include <string>

#include <gtest/gtest.h>

namespace hccl::test {

// Calls `function`. If it throws an Error, expects the error to have code `code` and returns the
// error's text. Otherwise returns an empty string.
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
