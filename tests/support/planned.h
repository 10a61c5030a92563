// SPDX-License-Identifier: Apache-2.0
// The bits that a reduction across nodes must give: its plan, interpreted with the scalar fold.
#pragma once

#include "operation.h"

#include <functional>

namespace hccl::test {

// Of `rank`. `input(source, index)`: element of the send buffer of a rank.
[[nodiscard]] std::vector<std::uint64_t> planned_reduction(
    const Operation& operation, int rank,
    const std::function<std::uint64_t(int, std::size_t)>& input);

}  // namespace hccl::test
