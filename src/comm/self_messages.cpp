// SPDX-License-Identifier: Apache-2.0
#include "comm/self_messages.h"

#include "base/error.h"
#include "base/text.h"

#include <algorithm>

namespace hccl::comm {

std::vector<SelfCopy> pair_self_messages(MessageList& calls, int rank) {
  const auto to_itself = [rank](const PointToPoint& call) { return call.peer == rank; };
  if (std::ranges::none_of(calls.all(), to_itself)) return {};
  std::vector<PointToPoint> sends, receives;
  for (const PointToPoint& call : calls.all()) {
    if (to_itself(call)) (call.direction == Direction::send ? sends : receives).push_back(call);
  }
  calls.erase_if(to_itself);
  std::vector<SelfCopy> copies;
  for (std::size_t at = 0; at < std::max(sends.size(), receives.size()); ++at) {
    const PointToPoint* const send = at < sends.size() ? &sends[at] : nullptr;
    const PointToPoint* const receive = at < receives.size() ? &receives[at] : nullptr;
    if (send == nullptr || receive == nullptr || send->count != receive->count ||
        send->type != receive->type) {
      throw Error(
          hcclInternalError,
          text("rank ", rank,
               " sends to itself: ", send != nullptr ? describe(*send) : std::string("nothing"),
               " is paired with ", receive != nullptr ? describe(*receive) : std::string("nothing"),
               "; put both calls into one group and on one stream, with the same count ",
               "and type"));
    }
    if (send->address != receive->address)
      copies.push_back({send->address, receive->address, send->bytes()});
  }
  return copies;
}

}  // namespace hccl::comm
