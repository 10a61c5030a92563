// SPDX-License-Identifier: Apache-2.0
// Delays reports of lost ranks by kLastWords: another rank of the same node may report the cause
// first, and the connections of a lost node end one by one.
#include "bootstrap/fault_relay.h"

#include "base/peer_process.h"
#include "base/text.h"

#include <algorithm>
#include <utility>

namespace hccl::bootstrap {

void FaultRelay::rank_departed(int rank) {
  departed_.insert(rank);
  ranks_.broadcast(FrameType::departed, serialize(RankMessage{rank}), true);
}

void FaultRelay::connection_ended(int rank, const std::string& why) {
  if (departed_.contains(rank) || fault_spread_) return;
  lost_.push_back(rank);
  why_lost_ = why;
  if (lost_.size() == 1) last_words_.start(kLastWords, [this] { report_lost(); });
}

void FaultRelay::report_lost() {
  std::ranges::sort(lost_);
  spread(
      {hcclSystemError,
       text(rendezvous_.describe_ranks(lost_), lost_.size() == 1 ? " has exited" : " have exited",
            " or cannot be reached (", why_lost_,
            "); look at the output of each lost rank and at the network between the nodes")});
}

void FaultRelay::spread(const Failure& failure) {
  if (std::exchange(fault_spread_, true)) return;
  ranks_.broadcast(FrameType::fault, serialize(failure));
}

}  // namespace hccl::bootstrap
