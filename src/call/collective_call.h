// SPDX-License-Identifier: Apache-2.0
// A validated collective call, as it is queued on a stream.
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
  std::uint64_t count = 0;  // elements in the message, in a block or, if exchanges(), in all blocks
  std::uint64_t send = 0;   // send and recv: addresses of device memory or of host memory
  std::uint64_t recv = 0;
  // If a back end has divided the program's call and this call is one of the parts: the program's
  // call, and that call's number on its stream. Otherwise null.
  const CollectiveCall* whole = nullptr;
  std::uint64_t whole_number = 0;

  [[nodiscard]] hcclDataType_t data_type() const { return static_cast<hcclDataType_t>(type); }
  [[nodiscard]] hcclRedOp_t reduction() const { return static_cast<hcclRedOp_t>(operation); }
  [[nodiscard]] const CollectiveTraits& traits() const { return hccl::traits(collective); }
};

// Returns the program's call: `call` itself, or the call of which it is a part.
[[nodiscard]] inline const CollectiveCall& program_call(const CollectiveCall& call) {
  return call.whole == nullptr ? call : *call.whole;
}

// Returns the size in bytes of one block or, if the collective has no blocks, of the message.
[[nodiscard]] std::uint64_t chunk_bytes(const CollectiveCall& call, int ranks);
[[nodiscard]] inline int send_chunks(const CollectiveCall& call, int ranks) {
  return call.traits().has_blocks_in_input ? ranks : 1;
}
[[nodiscard]] inline int recv_chunks(const CollectiveCall& call, int ranks) {
  return call.traits().has_blocks_in_output ? ranks : 1;
}

// Return the size in bytes of a sender's send buffer, and of a receiver's receive buffer, in a call
// among `ranks` ranks.
[[nodiscard]] std::uint64_t send_bytes(const CollectiveCall& call, int ranks);
[[nodiscard]] std::uint64_t recv_bytes(const CollectiveCall& call, int ranks);

[[nodiscard]] inline bool sends(const CollectiveCall& call, int rank) {
  return contains(call.traits().senders, rank, call.root);
}
[[nodiscard]] inline bool receives(const CollectiveCall& call, int rank) {
  return contains(call.traits().receivers, rank, call.root);
}
[[nodiscard]] inline int senders(const CollectiveCall& call, int ranks) {
  return size_of(call.traits().senders, ranks);
}
[[nodiscard]] inline int receivers(const CollectiveCall& call, int ranks) {
  return size_of(call.traits().receivers, ranks);
}

// Returns whether the two buffers of `rank` have the addresses that the in-place form of the
// collective requires.
[[nodiscard]] bool is_in_place(const CollectiveCall& call, int rank, int ranks);
// Returns whether `rank` is the only sender of an in-place call. If so, the call does not write to
// the rank's receive buffer, which may therefore be read-only.
[[nodiscard]] inline bool keeps_own_data(const CollectiveCall& call, int rank) {
  return call.traits().senders == RankSet::root && call.root == rank && call.send == call.recv;
}

// Returns a text such as "all_reduce(1025, float, sum)".
[[nodiscard]] std::string describe(const CollectiveCall& call);

}  // namespace hccl
