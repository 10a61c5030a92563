// SPDX-License-Identifier: Apache-2.0
#include "network/call_header.h"

#include "base/text.h"

#include <cstring>

namespace hccl::network {

CallHeader CallHeader::from(std::span<const std::byte> bytes) {
  CallHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  return header;
}

CollectiveCall CallHeader::call() const {
  CollectiveCall call;
  call.collective = static_cast<Collective>(collective);
  call.type = type;
  call.operation = operation;
  call.root = root;
  call.count = count;
  return call;
}

std::string why_unlike(int own_rank, const CallHeader& own, int peer, const CallHeader& theirs) {
  const std::string ours = describe(own.call());
  const bool are_alike = describe(theirs.call()) == ours;
  if (theirs.format != CallHeader::kFormat) {
    return text("rank ", own_rank, " in ", ours, ": rank ", peer,
                " sent what no call of this version sends; install the same hccl on all ranks");
  }
  if (!are_alike) {
    return text("op ", own.number, ": rank ", own_rank, ' ', ours, " but rank ", peer, ' ',
                describe(theirs.call()), "; all ranks must make the same calls in the same order");
  }
  if (theirs.number != own.number) {
    return text("op ", own.number, " of rank ", own_rank, " met op ", theirs.number, " of rank ",
                peer, ", both ", ours, "; a rank has made a call more on another stream");
  }
  return text("op ", own.number, ", ", ours, ": rank ", own_rank, " and rank ", peer,
              " chose different algorithms; set the same HCCL_* variables on all ranks");
}

}  // namespace hccl::network
