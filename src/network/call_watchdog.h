// SPDX-License-Identifier: Apache-2.0
// Watchdog of a blocked network call: checks for a communicator fault, answers other ranks' stall
// queries, enforces HCCL_TIMEOUT and writes the hang report. Also formats the error of a lost peer.
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

// The watched call, for error texts and for the answers to stall queries.
struct WatchedCall {
  // The position of the call if it is a collective, else of the next collective of its stream.
  CallPosition position;
  bool is_collective = true;
  std::function<std::string()> text;
  std::function<std::vector<int>()> awaited;  // returns the ranks that the call is waiting for
  const StreamLookahead* ahead = nullptr;
  std::uint64_t stream = 0;  // its stream's id
};

class CallWatchdog final : public ProgressObserver {
 public:
  CallWatchdog(NetworkBackend& network, WatchedCall call);
  ~CallWatchdog() override;

  void on_attempt() override;
  void on_idle(bool moved) override;
  // Asks all ranks which of them made the call that does not match. Blocks for at most a second.
  // Throws the fault that results from the answers, else `found`. `wait_set`: a wait set that
  // NetworkBackend::wake() rings.
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
  // A time limit that restarts whenever the call makes progress. The other ranks are queried before
  // it expires, so that the error can name the root cause.
  struct TimeLimit {
    void begin(Deadline::Duration limit);

    Deadline ask = Deadline::never();
    Deadline end = Deadline::never();
  };
  StallReports::Time begin_;
  WaitLimit::Value limit_;
  TimeLimit timeout_;
  TimeLimit report_;
  // Two early queries, which reveal mismatched calls that wait for each other.
  Deadline early_ask_ = Deadline::never();
  Deadline second_ask_ = Deadline::never();
  Deadline departed_ = Deadline::never();
};

// Throws the communicator's fault if one arrives within half a second, because that fault may be
// the reason for the loss. Otherwise throws Error(hcclSystemError) that names the peer and states
// whether it has left the communicator. `wait_set`: a wait set that NetworkBackend::wake() rings.
[[noreturn]] void throw_lost(NetworkBackend& network, transport::WaitSet& wait_set,
                             const std::string& doing, const transport::PeerLost& lost);

}  // namespace hccl::network
