// SPDX-License-Identifier: Apache-2.0
// The bits that a reduction across nodes must give: its plan, interpreted with the scalar fold.
#pragma once

#include "operation.h"

#include <functional>
#include <span>

namespace hccl::test {

// Of `rank`. `input(source, words)` gives the elements of the send buffer of a rank.
[[nodiscard]] std::vector<std::uint64_t> planned_reduction(
    const Operation& operation, int rank,
    const std::function<void(int, std::span<std::uint64_t>)>& input);

}  // namespace hccl::test
