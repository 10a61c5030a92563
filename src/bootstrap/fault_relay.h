// SPDX-License-Identifier: Apache-2.0
// Runs on the root server after initialisation: relays departures and the first fault to all ranks.
// A connection that ends without a departure counts as a fault.
#pragma once

#include "bootstrap/event_loop.h"
#include "bootstrap/messages.h"
#include "bootstrap/rank_connections.h"
#include "bootstrap/rendezvous.h"

#include <set>
#include <string>
#include <vector>

namespace hccl::bootstrap {

// Thread safety: control thread only.
class FaultRelay {
 public:
  FaultRelay(EventLoop& loop, RankConnections& ranks, const Rendezvous& rendezvous)
      : ranks_(ranks), rendezvous_(rendezvous), last_words_(loop) {}

  void rank_departed(int rank);
  // Handles the end of a rank's connection. `why`: the reason, as a clause.
  void connection_ended(int rank, const std::string& why);
  // Relays the failure to all ranks, unless a failure has already been relayed.
  void spread(const Failure& failure);
  // Discards losses that have not been relayed yet.
  void stop() { last_words_.cancel(); }
  [[nodiscard]] const std::set<int>& departed() const { return departed_; }

 private:
  void report_lost();

  RankConnections& ranks_;
  const Rendezvous& rendezvous_;
  LoopTimer last_words_;
  std::set<int> departed_;
  std::vector<int> lost_;  // ranks whose loss has not been relayed yet
  std::string why_lost_;
  bool fault_spread_ = false;
};

}  // namespace hccl::bootstrap
