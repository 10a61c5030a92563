// SPDX-License-Identifier: Apache-2.0
// Averages over connections: schedules fold a sum step by step, which is divided at the end.
#pragma once

#include "call/collective_call.h"
#include "network/flow.h"

#include <cstdint>

namespace hccl::network {

// Returns whether the ranks scale their inputs down before they fold them, because the sum may
// leave the range of the type although the mean does not.
[[nodiscard]] bool prescales(const CollectiveCall& call);
// Writes the input of a call, `bytes` long, to `to` and scales it.
void prescale(const CollectiveCall& call, Memory& input, Memory& to, std::uint64_t bytes,
              int ranks);
// Turns the complete sums in the first `bytes` of `output` into averages.
void divide(const CollectiveCall& call, Memory& output, std::uint64_t bytes, int ranks);

}  // namespace hccl::network
