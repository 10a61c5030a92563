// SPDX-License-Identifier: Apache-2.0
// Compares the declared types of functions, for the interface tests.
#pragma once

#include <type_traits>

namespace hccl::test {

// Returns whether a function has exactly the type `Expected`.
template <class Expected, class Function>
constexpr bool is(Function*) {
  return std::is_same_v<Expected, Function>;
}

}  // namespace hccl::test
