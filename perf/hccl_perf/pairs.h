// SPDX-License-Identifier: Apache-2.0
// Tests between pairs of ranks, after those of the OSU micro-benchmarks: rank i of the first half
// and rank i + N/2. Where ranks are spread over two nodes in blocks, every pair is between them.
#pragma once

#include "collective.h"

namespace hccl_perf {

// Messages of one call of message_rate: OSU's default window.
inline constexpr int kWindow = 64;

[[nodiscard]] constexpr bool in_first_half(int rank, int ranks) { return rank < ranks / 2; }

[[nodiscard]] constexpr int partner_of(int rank, int ranks) {
  return in_first_half(rank, ranks) ? rank + ranks / 2 : rank - ranks / 2;
}

// Each queues one call between `call.rank` and its partner, as hcclSend and hcclRecv return.
// The first half sends, the second answers:
[[nodiscard]] hcclResult_t ping_pong(const Call& call, hcclComm_t communicator, void* stream);
// Both send and receive at once:
[[nodiscard]] hcclResult_t exchange_both_ways(const Call& call, hcclComm_t communicator,
                                              void* stream);
// The first half sends kWindow messages, each from and to a place of its own:
[[nodiscard]] hcclResult_t send_window(const Call& call, hcclComm_t communicator, void* stream);

}  // namespace hccl_perf
