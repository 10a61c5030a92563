// SPDX-License-Identifier: Apache-2.0
// Computes averages: a schedule computes the sum, which is then divided by the number of ranks.
#pragma once

#include "call/collective_call.h"
#include "network/flow.h"

#include <cstdint>

namespace hccl::network {

// Returns whether the ranks scale down their inputs before they sum them, because the sum may
// exceed the range of the type although the average does not.
[[nodiscard]] bool prescales(const CollectiveCall& call);
// Scales down the first `bytes` bytes of a call's input (prescale_tile()), and stores the result in
// `to`.
void prescale(const CollectiveCall& call, Memory& input, Memory& to, std::uint64_t bytes,
              int ranks);
// Turns the sums in the first `bytes` bytes of `output` into averages.
void divide(const CollectiveCall& call, Memory& output, std::uint64_t bytes, int ranks);

}  // namespace hccl::network
