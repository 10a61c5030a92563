// SPDX-License-Identifier: Apache-2.0
// Tests between pairs of ranks, modelled on the OSU micro-benchmarks: rank i of the first half and
// rank i + N/2. If the ranks form blocks on two nodes, the two ranks of every pair are on different
// nodes.
#pragma once

#include "collective.h"

namespace hccl_perf {

// The number of messages in one call of message_rate. It is OSU's default window.
inline constexpr int kWindow = 64;

[[nodiscard]] constexpr bool in_first_half(int rank, int ranks) { return rank < ranks / 2; }

[[nodiscard]] constexpr int partner_of(int rank, int ranks) {
  return in_first_half(rank, ranks) ? rank + ranks / 2 : rank - ranks / 2;
}

// Queues a send from the first half, and the reply. Like the next two functions, queues one call
// between `call.rank` and its partner, and returns the result of hcclSend or hcclRecv.
[[nodiscard]] hcclResult_t ping_pong(const Call& call, hcclComm_t communicator, void* stream);
// Queues a send and a receive at the same time, in both directions.
[[nodiscard]] hcclResult_t exchange_both_ways(const Call& call, hcclComm_t communicator,
                                              void* stream);
// Queues kWindow messages from the first half, each with its own part of the buffers.
[[nodiscard]] hcclResult_t send_window(const Call& call, hcclComm_t communicator, void* stream);

}  // namespace hccl_perf
