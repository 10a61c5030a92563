// SPDX-License-Identifier: Apache-2.0
// Limits how long calls wait for other ranks. After HCCL_TIMEOUT, or the limit that the program has
// set instead, fails the communicator. After HCCL_HANG_REPORT, logs a line that names the ranks
// that delay the call.
#pragma once

#include "base/deadline.h"
#include "base/wait_limit.h"
#include "node/node_segment.h"

#include <atomic>
#include <chrono>
#include <string>

namespace hccl::node {

class StallMonitor {
 public:
  // A time of 0 means never. `node` must outlive the monitor.
  StallMonitor(NodeSegment& node, std::chrono::milliseconds timeout,
               std::chrono::milliseconds hang_report)
      : node_(node), wait_limit_(timeout), hang_report_(hang_report) {}

  // Returns the time-out. A change applies to waits that begin afterwards. Thread safety: any
  // thread.
  [[nodiscard]] WaitLimit& wait_limit() { return wait_limit_; }

 private:
  friend class StallTimer;
  void time_out(const WaitLimit::Value& limit, const std::string& call, const std::string& delay);
  void report_hang(const std::string& call, const std::string& delay);

  NodeSegment& node_;
  WaitLimit wait_limit_;
  const std::chrono::milliseconds hang_report_;
  std::atomic<bool> reported_{false};  // this rank writes one report per communicator
};

// The time limits of one call.
class StallTimer {
 public:
  explicit StallTimer(StallMonitor& monitor) : monitor_(monitor) {}

  // Starts the time limits on the first call; later calls do nothing. Call before a sleep, not
  // while polling: polls are too short to justify reading the clock.
  void start();
  [[nodiscard]] bool started() const { return started_; }
  // Raises a fault if the time-out has expired. Otherwise, writes the hang report if it is due.
  // `call()` describes the call; `delay()` states which ranks delay the call, and why.
  template <class Call, class Delay>
  void check(Call call, Delay delay) {
    if (deadline_.expired()) {
      monitor_.time_out(limit_, call(), delay());
    } else if (report_.expired() && !monitor_.reported_.exchange(true)) {
      monitor_.report_hang(call(), delay());
    }
  }
  // Returns how long to sleep before the next check.
  [[nodiscard]] Deadline::Duration time_to_check() const;

 private:
  StallMonitor& monitor_;
  bool started_ = false;
  WaitLimit::Value limit_;
  Deadline deadline_ = Deadline::never();
  Deadline report_ = Deadline::never();
};

}  // namespace hccl::node
