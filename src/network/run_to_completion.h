// SPDX-License-Identifier: Apache-2.0
// Runs executions to completion on the calling thread, which polls, then yields, then sleeps.
#pragma once

#include "base/waiter.h"
#include "network/execution.h"

#include <chrono>
#include <span>

namespace hccl::network {

// Callbacks by which a caller checks deadlines and faults while its thread waits.
class ProgressObserver {
 public:
  ProgressObserver() = default;
  virtual ~ProgressObserver() = default;
  ProgressObserver(const ProgressObserver&) = delete;
  ProgressObserver& operator=(const ProgressObserver&) = delete;

  // Called after every attempt to move data, so it must be fast. May throw, which ends the call.
  virtual void on_attempt() = 0;
  // Called while nothing moves: before each sleep, and after every few attempts. `moved` says
  // whether anything has moved since the previous call. May throw, which ends the call.
  virtual void on_idle(bool moved) = 0;
};
inline constexpr std::chrono::milliseconds kIdlePeriod{100};

// Paces the attempts to move data: first polls, then yields, then asks the caller to sleep.
class Backoff {
 public:
  Backoff(WaitLadder ladder, ProgressObserver& observer)
      : ladder_(ladder), waiter_(ladder), observer_(observer) {}

  // Call after each attempt; `moved` says whether anything has moved. Returns whether the caller
  // must sleep now, for at most kIdlePeriod. Throws what the observer throws.
  [[nodiscard]] bool sleep_after(bool moved);

 private:
  const WaitLadder ladder_;
  Waiter waiter_;
  ProgressObserver& observer_;
  bool moved_since_idle_call_ = true;
  unsigned attempts_ = 0;  // number of attempts since anything moved
};

// Runs all channels of a call. Blocks until they are complete. Throws what the executions, the
// observer and WaitSet::wait() throw.
void run_to_completion(std::span<Execution* const> executions, transport::WaitSet& wait_set,
                       WaitLadder ladder, ProgressObserver& observer);

}  // namespace hccl::network
