// SPDX-License-Identifier: Apache-2.0
// The engine's waits: the ladder, then sleeps that end with news, at the deadline or for the hang
// report. Private to the engine's files.
#pragma once

#include "node/operation.h"

namespace hccl::node {

// Returns true once `ready` holds, or false once the wait budget is used up, which never happens if
// it is unlimited: then the operation returns without being complete.
template <class Ready>
bool Engine::wait(Operation& op, Ready ready, WaitBudget wait_budget) {
  Waiter waiter(segment_.ladder());
  while (!ready()) {
    if (waiter.poll_again(wait_budget)) continue;
    if (wait_budget != WaitBudget::unlimited) return false;
    sleep(op, ready);
  }
  return true;
}

template <class Ready>
void Engine::sleep(Operation& op, Ready ready) {
  check_time_limits(op);
  auto limit = op.deadline.remaining(std::chrono::hours(1));
  if (!hang_reported_.load(std::memory_order_relaxed)) {
    limit = std::min(limit, op.report.remaining(std::chrono::hours(1)));
  }
  limit = std::min<Deadline::Duration>(limit, note_attendance(op));
  op.lane.block().bell.sleep(limit + std::chrono::milliseconds(1), ready);
}

}  // namespace hccl::node
