// SPDX-License-Identifier: Apache-2.0
// Sizes and names of collectives.
#include "call/collective_call.h"

#include "base/text.h"
#include "reduce/reduce.h"

namespace hccl {

std::uint64_t chunk_bytes(const CollectiveCall& call, int ranks) {
  const std::uint64_t bytes = call.count * reduce::element_size(call.data_type());
  if (call.collective == Collective::barrier) return 0;
  return call.collective == Collective::all_to_all ? bytes / static_cast<std::uint64_t>(ranks)
                                                   : bytes;
}

std::uint64_t send_bytes(const CollectiveCall& call, int ranks) {
  return chunk_bytes(call, ranks) * static_cast<std::uint64_t>(send_chunks(call, ranks));
}

std::uint64_t recv_bytes(const CollectiveCall& call, int ranks) {
  return chunk_bytes(call, ranks) * static_cast<std::uint64_t>(recv_chunks(call, ranks));
}

std::string describe(const CollectiveCall& call) {
  if (call.collective == Collective::barrier) return "barrier()";
  std::string described =
      text(name_of(call.collective), "(", call.count, ", ", reduce::type_name(call.data_type()));
  if (call.reduction() != hcclOpNone) {
    described += text(", ", reduce::operation_name(call.reduction()));
  }
  if (call.root >= 0) described += text(", root ", call.root);
  return described + ")";
}

}  // namespace hccl
