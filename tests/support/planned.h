// SPDX-License-Identifier: Apache-2.0
// Computes the bit-exact result of a reduction between nodes: interprets the call's plan, or the
// parts into which the library divides the call, and reduces with the reference implementation in
// scalar_fold.h.
#pragma once

#include "operation.h"

#include <functional>
#include <span>

namespace hccl::test {

// Returns the expected result on `rank`. input(source, words) must fill `words` with the send
// buffer of rank `source`.
[[nodiscard]] std::vector<std::uint64_t> planned_reduction(
    const Operation& operation, int rank,
    const std::function<void(int, std::span<std::uint64_t>)>& input);

}  // namespace hccl::test
