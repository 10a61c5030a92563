// SPDX-License-Identifier: Apache-2.0
// Finds the root cause of a stall. A rank knows only which ranks it waits for, and those may wait
// for others, so the root server queries all ranks.
#pragma once

#include "base/deadline.h"
#include "bootstrap/event_loop.h"
#include "bootstrap/fault_relay.h"
#include "bootstrap/rank_connections.h"
#include "bootstrap/rendezvous.h"
#include "bootstrap/wait_for_graph.h"

#include <chrono>
#include <set>
#include <string>

namespace hccl::bootstrap {

// Thread safety: control thread only.
class StallJudge {
 public:
  StallJudge(EventLoop& loop, RankConnections& ranks, const Rendezvous& rendezvous,
             FaultRelay& faults)
      : ranks_(ranks), rendezvous_(rendezvous), faults_(faults), judgement_(loop) {}

  // Processes a rank's report that its call `waiting` does not complete.
  void on_stuck(int rank, Waiting waiting);
  // Processes an answer to the inquiry. A rank first reports the last collectives that it has
  // completed, then its calls in progress, or that it has none.
  void on_answer(int rank, Waiting waiting);
  // Cancels the pending verdict.
  void stop() { judgement_.cancel(); }

 private:
  [[nodiscard]] bool have_all_answered() const;
  void judge_after(std::chrono::milliseconds delay);
  void judge();

  RankConnections& ranks_;
  const Rendezvous& rendezvous_;
  FaultRelay& faults_;
  LoopTimer judgement_;
  std::set<int> askers_;    // the ranks that await a verdict; empty if no inquiry is in progress
  bool is_second_ = false;  // the first verdict lacked some answers; a second one follows
  WaitForGraph waiting_;
  std::set<int> answered_;  // ranks that have reported a current call, or that they have none
  std::string suspected_;   // the deadlock found last, which may still resolve itself
  // If the same deadlock is found again after this time, it is reported.
  Deadline suspected_until_ = Deadline::never();
};

}  // namespace hccl::bootstrap
