// SPDX-License-Identifier: Apache-2.0
// The texts of calls that do not match.
#include "executor/call_header.h"

#include "base/text.h"
#include "reduce/reduce.h"

#include <cstring>

namespace hccl::executor {

CallHeader CallHeader::from(std::span<const std::byte> bytes) {
  CallHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  return header;
}

std::string describe(const CallHeader& call) {
  const auto collective = static_cast<Collective>(call.collective);
  if (collective == Collective::barrier) return "barrier()";
  const auto operation = static_cast<hcclRedOp_t>(call.operation);
  const bool folds = reduces(collective);
  const bool rooted = has_root(collective);
  return text(name_of(collective), '(', call.count, ", ",
              reduce::type_name(static_cast<hcclDataType_t>(call.type)), folds ? ", " : "",
              folds ? reduce::operation_name(operation) : "", rooted ? ", root " : "",
              rooted ? std::to_string(call.root) : "", ')');
}

std::string why_unlike(int own_rank, const CallHeader& own, int peer, const CallHeader& theirs) {
  const std::string ours = describe(own);
  const bool are_alike = describe(theirs) == ours;
  if (theirs.format != CallHeader::kFormat) {
    return text("rank ", own_rank, " in ", ours, ": rank ", peer,
                " sent what no call of this version sends; install the same hccl on all ranks");
  }
  if (!are_alike) {
    return text("op ", own.number, ": rank ", own_rank, ' ', ours, " but rank ", peer, ' ',
                describe(theirs), "; all ranks must make the same calls in the same order");
  }
  if (theirs.number != own.number) {
    return text("op ", own.number, " of rank ", own_rank, " met op ", theirs.number, " of rank ",
                peer, ", both ", ours, "; a rank has made a call more on another stream");
  }
  return text("op ", own.number, ", ", ours, ": rank ", own_rank, " and rank ", peer,
              " chose different algorithms; set the same HCCL_* variables on all ranks");
}

}  // namespace hccl::executor
