// SPDX-License-Identifier: Apache-2.0
// Sizes and names of collectives.
#include "call/collective_call.h"

#include "base/text.h"
#include "reduce/reduce.h"

namespace hccl {

std::uint64_t chunk_bytes(const CollectiveCall& call, int ranks) {
  const std::uint64_t bytes = call.count * reduce::element_size(call.data_type());
  if (call.collective == Collective::barrier) return 0;
  return traits(call.collective).exchanges() ? bytes / static_cast<std::uint64_t>(ranks) : bytes;
}

std::uint64_t send_bytes(const CollectiveCall& call, int ranks) {
  return chunk_bytes(call, ranks) * static_cast<std::uint64_t>(send_chunks(call, ranks));
}

std::uint64_t recv_bytes(const CollectiveCall& call, int ranks) {
  return chunk_bytes(call, ranks) * static_cast<std::uint64_t>(recv_chunks(call, ranks));
}

bool is_in_place(const CollectiveCall& call, int rank, int ranks) {
  const CollectiveTraits& traits = call.traits();
  const std::uint64_t own = chunk_bytes(call, ranks) * static_cast<std::uint64_t>(rank);
  const bool in_input = traits.has_blocks_in_input && !traits.has_blocks_in_output;
  const bool in_output = traits.has_blocks_in_output && !traits.has_blocks_in_input;
  return call.send + (in_input ? own : 0) == call.recv + (in_output ? own : 0);
}

std::string describe(const CollectiveCall& call) {
  if (call.collective == Collective::barrier) return "barrier()";
  std::string described =
      text(name_of(call.collective), "(", call.count, ", ", reduce::type_name(call.data_type()));
  if (call.traits().reduces) described += text(", ", reduce::operation_name(call.reduction()));
  if (call.traits().has_root()) described += text(", root ", call.root);
  return described + ")";
}

}  // namespace hccl
