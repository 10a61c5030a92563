// SPDX-License-Identifier: Apache-2.0
// Runs executions to completion on the caller's thread: polls, then yields, then sleeps.
#pragma once

#include "base/waiter.h"
#include "network/execution.h"

#include <chrono>
#include <span>

namespace hccl::network {

// Callbacks for a caller's own duties, such as deadlines, while its thread waits.
class ProgressObserver {
 public:
  ProgressObserver() = default;
  virtual ~ProgressObserver() = default;
  ProgressObserver(const ProgressObserver&) = delete;
  ProgressObserver& operator=(const ProgressObserver&) = delete;

  // Called after every attempt, so it must be cheap. Throw to abort the call.
  virtual void on_attempt() = 0;
  // Called while no transfer makes progress, always before sleeping and at least every kIdlePeriod.
  // `moved`: whether anything progressed since the previous call. Throw to abort the call.
  virtual void on_idle(bool moved) = 0;
};
inline constexpr std::chrono::milliseconds kIdlePeriod{100};

// Backs off between attempts: pauses, yields, then tells the caller to sleep.
class Backoff {
 public:
  Backoff(WaitLadder ladder, ProgressObserver& observer)
      : ladder_(ladder), waiter_(ladder), observer_(observer) {}

  // Call after each attempt. Returns whether to sleep now, for at most kIdlePeriod. Throws what the
  // observer throws.
  [[nodiscard]] bool sleep_after(bool moved);

 private:
  const WaitLadder ladder_;
  Waiter waiter_;
  ProgressObserver& observer_;
  bool moved_since_idle_call_ = true;
  unsigned attempts_ = 0;  // since anything moved
};

// Runs the channels of a call. Blocks until all are complete. Throws what they and the observer
// throw.
void run_to_completion(std::span<Execution* const> executions, transport::WaitSet& wait_set,
                       WaitLadder ladder, ProgressObserver& observer);

}  // namespace hccl::network
