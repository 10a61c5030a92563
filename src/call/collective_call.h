// SPDX-License-Identifier: Apache-2.0
// A validated request for one collective, as it waits on a stream.
#pragma once

#include "call/collective.h"

#include <hccl_types.h>

#include <cstdint>
#include <string>

namespace hccl {

struct CollectiveCall {
  Collective collective = Collective::barrier;
  std::uint8_t type = 0;       // hcclDataType_t
  std::uint8_t operation = 0;  // hcclRedOp_t; hcclOpNone for pure copies
  std::int32_t root = -1;
  std::uint64_t count = 0;  // elements, as the API counts them: of the whole, or of one rank's part
  std::uint64_t send = 0;   // addresses, of the device once the node back end has the call
  std::uint64_t recv = 0;

  [[nodiscard]] hcclDataType_t data_type() const { return static_cast<hcclDataType_t>(type); }
  [[nodiscard]] hcclRedOp_t reduction() const { return static_cast<hcclRedOp_t>(operation); }
};

// Chunks are what lies in one piece on every rank: the part of a rank, or of a pair of ranks, or
// the whole where there are no parts.
[[nodiscard]] std::uint64_t chunk_bytes(const CollectiveCall& call, int ranks);
[[nodiscard]] inline int send_chunks(const CollectiveCall& call, int ranks) {
  return has_blocks_in_input(call.collective) ? ranks : 1;
}
[[nodiscard]] inline int recv_chunks(const CollectiveCall& call, int ranks) {
  return has_blocks_in_output(call.collective) ? ranks : 1;
}

// Bytes of the buffers of a rank that sends, and of one that receives, in a call among `ranks`.
[[nodiscard]] std::uint64_t send_bytes(const CollectiveCall& call, int ranks);
[[nodiscard]] std::uint64_t recv_bytes(const CollectiveCall& call, int ranks);

// Return whether `rank` does: all but the root only receive a broadcast, and only send to a reduce.
[[nodiscard]] inline bool sends(const CollectiveCall& call, int rank) {
  return call.collective != Collective::broadcast || call.root == rank;
}
[[nodiscard]] inline bool receives(const CollectiveCall& call, int rank) {
  return call.collective != Collective::reduce || call.root == rank;
}
// Returns true if the call leaves the receive buffer of `rank` as it is, because the root of an
// in-place broadcast has its data already. The buffer may be read-only then.
[[nodiscard]] inline bool keeps_own_data(const CollectiveCall& call, int rank) {
  return call.collective == Collective::broadcast && call.root == rank && call.send == call.recv;
}
[[nodiscard]] inline int senders(const CollectiveCall& call, int ranks) {
  return call.collective == Collective::broadcast ? 1 : ranks;
}
[[nodiscard]] inline int receivers(const CollectiveCall& call, int ranks) {
  return call.collective == Collective::reduce ? 1 : ranks;
}

// "all_reduce(1025, float, sum)"
[[nodiscard]] std::string describe(const CollectiveCall& call);

}  // namespace hccl
