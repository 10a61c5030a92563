// SPDX-License-Identifier: Apache-2.0
// Tests between pairs of ranks, modelled on the OSU micro-benchmarks. With N ranks, rank i of the
// first half forms a pair with rank i + N/2. If each half has its own node, every pair spans both
// nodes.
#pragma once

#include "collective.h"

namespace hccl_perf {

// The number of messages in one call of message_rate, which is OSU's default window.
inline constexpr int kWindow = 64;

[[nodiscard]] constexpr bool in_first_half(int rank, int ranks) { return rank < ranks / 2; }

[[nodiscard]] constexpr int partner_of(int rank, int ranks) {
  return in_first_half(rank, ranks) ? rank + ranks / 2 : rank - ranks / 2;
}

// Each of these functions queues one call of `call.rank` with its partner, and returns the first
// error, or hcclSuccess.

// Queues a message from the first half, then a reply.
[[nodiscard]] hcclResult_t ping_pong(const Call& call, hcclComm_t communicator, void* stream);
// Queues a send and a receive as one group.
[[nodiscard]] hcclResult_t exchange_both_ways(const Call& call, hcclComm_t communicator,
                                              void* stream);
// Queues kWindow messages from the first half as one group. Each has its own part of the buffers.
[[nodiscard]] hcclResult_t send_window(const Call& call, hcclComm_t communicator, void* stream);

}  // namespace hccl_perf
