// SPDX-License-Identifier: Apache-2.0
// The watchdog of a call that waits for other ranks. Checks for faults and departed ranks, sends
// and answers stall queries, enforces the time limit and writes the hang report. throw_lost()
// throws the error for a lost peer.
#pragma once

#include "base/deadline.h"
#include "base/wait_limit.h"
#include "bootstrap/wait_for_graph.h"
#include "call/lookahead.h"
#include "network/network_backend.h"
#include "network/run_to_completion.h"

#include <functional>
#include <string>
#include <vector>

namespace hccl::network {

// The call that a watchdog watches, as described in error texts and in answers to stall queries.
struct WatchedCall {
  // The position of the collective. For messages, the position of the next collective of their
  // stream.
  CallPosition position;
  bool is_collective = true;
  std::function<std::string()> text;
  std::function<std::vector<int>()> awaited;  // returns the ranks that the call is waiting for
  const StreamLookahead* ahead = nullptr;
  std::uint64_t stream = 0;  // the id of the call's stream
};

class CallWatchdog final : public ProgressObserver {
 public:
  CallWatchdog(NetworkBackend& network, WatchedCall call);
  ~CallWatchdog() override;

  void on_attempt() override;
  void on_idle(bool moved) override;
  // Queries all ranks to find out which of them has made a different call. Blocks for at most a
  // second. Throws the fault that the server derives from the answers or, if no fault arrives,
  // `found`. `wait_set` must be one that NetworkBackend::wake() rings.
  [[noreturn]] void throw_mismatch(const CallMismatch& found, transport::WaitSet& wait_set);

 private:
  [[nodiscard]] bootstrap::Waiting waiting() const;
  void begin_timeout();
  void answer_inquiry();
  void check_departed();
  void check_timeout();
  [[noreturn]] void time_out() const;
  void report_hang();
  [[nodiscard]] std::string awaited_text() const;

  NetworkBackend& network_;
  const WatchedCall call_;
  std::uint64_t answered_;
  // A time limit, which restarts whenever the call makes progress. Before the limit expires, the
  // watchdog queries all ranks, so that the error text can name the root cause.
  struct TimeLimit {
    void begin(Deadline::Duration limit);

    Deadline ask = Deadline::never();
    Deadline end = Deadline::never();
  };
  StallReports::Time begin_;
  WaitLimit::Value limit_;
  TimeLimit timeout_;
  TimeLimit report_;
  // Two early queries, which detect calls that wait for each other because they do not match.
  Deadline early_ask_ = Deadline::never();
  Deadline second_ask_ = Deadline::never();
  Deadline departed_ = Deadline::never();
};

// Handles the loss of a peer. Waits at most half a second for a fault or the peer's departure,
// which may be the cause. Throws the fault if there is one, and otherwise Error(hcclSystemError),
// which names the peer and says whether it has left the communicator. `wait_set` must be one that
// NetworkBackend::wake() rings.
[[noreturn]] void throw_lost(NetworkBackend& network, transport::WaitSet& wait_set,
                             const std::string& doing, const transport::PeerLost& lost);

}  // namespace hccl::network
