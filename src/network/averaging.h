// SPDX-License-Identifier: Apache-2.0
// Averages by schedules: a sum that is folded step by step, and divided when it is complete.
#pragma once

#include "call/collective_call.h"
#include "network/flow.h"

#include <cstdint>

namespace hccl::network {

// True if the ranks scale their inputs down before they fold them, because the sum may leave the
// range of the type although the mean does not.
[[nodiscard]] bool prescales(const CollectiveCall& call);
// Stores the scaled input of a call to `to`, which has room for `bytes`, all of the input.
void prescale(const CollectiveCall& call, Memory& input, Memory& to, std::uint64_t bytes,
              int ranks);
// Makes averages of the complete sums in the first `bytes` of `output`.
void divide(const CollectiveCall& call, Memory& output, std::uint64_t bytes, int ranks);

}  // namespace hccl::network
