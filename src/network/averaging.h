// SPDX-License-Identifier: Apache-2.0
// Averages over connections. Schedules fold a sum step by step, and the sum is divided at the end.
#pragma once

#include "call/collective_call.h"
#include "network/flow.h"

#include <cstdint>

namespace hccl::network {

// Returns whether the ranks scale their inputs down before they fold them, because the sum may
// exceed the range of the type although the mean does not.
[[nodiscard]] bool prescales(const CollectiveCall& call);
// Writes the first `bytes` of a call's input, scaled down, to `to`.
void prescale(const CollectiveCall& call, Memory& input, Memory& to, std::uint64_t bytes,
              int ranks);
// Turns the complete sums in the first `bytes` of `output` into averages.
void divide(const CollectiveCall& call, Memory& output, std::uint64_t bytes, int ranks);

}  // namespace hccl::network
