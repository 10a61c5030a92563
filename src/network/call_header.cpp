// SPDX-License-Identifier: Apache-2.0
#include "network/call_header.h"

#include "algorithms/catalogue.h"
#include "base/text.h"
#include "planner/planner.h"

#include <cstring>

namespace hccl::network {

CallHeader CallHeader::from(std::span<const std::byte> bytes) {
  CallHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  return header;
}

CallHeader CallHeader::of(const CollectiveCall& call, const planner::Plan& plan,
                          std::uint64_t number) {
  const auto algorithm = plan.algorithm - algorithms::catalogue().data();
  CallHeader header;
  header.collective = static_cast<std::uint8_t>(call.collective);
  header.type = call.type;
  header.operation = call.operation;
  header.algorithm = static_cast<std::uint8_t>(algorithm);
  header.number = number;
  header.count = call.count;
  header.root = call.root;
  header.channels = static_cast<std::uint8_t>(plan.shape.channels);
  header.pipeline = static_cast<std::uint8_t>(plan.shape.pipeline);
  return header;
}

CallHeader CallHeader::of(const PointToPoint& call, bool wants_answer) {
  CallHeader header;
  header.confirm = wants_answer ? 1 : 0;
  header.collective = static_cast<std::uint8_t>(Collective::point_to_point);
  header.type = call.type;
  header.number = call.number;
  header.count = call.count;
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
    return text(
        "rank ", own_rank, " in ", ours, ": rank ", peer,
        " sent data that is not a call header of this version; install the same version of hccl on "
        "all ranks");
  }
  if (!are_alike) {
    return text("op ", own.number, ": rank ", own_rank, ' ', ours, " but rank ", peer, ' ',
                describe(theirs.call()), "; every rank must make the same calls in the same order");
  }
  if (theirs.number != own.number) {
    return text("rank ", own_rank, " is in op ", own.number, " of a stream but rank ", peer,
                " in op ", theirs.number, ", both ", ours,
                "; every rank must make the same calls on each stream");
  }
  return text("op ", own.number, ", ", ours, ": rank ", own_rank, " and rank ", peer,
              " chose different algorithms; set the same HCCL_* variables on all ranks");
}

}  // namespace hccl::network
