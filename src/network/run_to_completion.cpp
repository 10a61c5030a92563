// SPDX-License-Identifier: Apache-2.0
#include "network/run_to_completion.h"

#include <algorithm>
#include <utility>

namespace hccl::network {

bool Backoff::sleep_after(bool moved) {
  constexpr unsigned kAttemptsPerIdleCall = 32;
  observer_.on_attempt();
  if (moved) {
    moved_since_idle_call_ = true;
    attempts_ = 0;
    waiter_ = Waiter(ladder_);
    return false;
  }
  const bool sleeps = !waiter_.poll_again();
  if (sleeps || ++attempts_ % kAttemptsPerIdleCall == 0)
    observer_.on_idle(std::exchange(moved_since_idle_call_, false));
  return sleeps;
}

void run_to_completion(std::span<Execution* const> executions, transport::WaitSet& wait_set,
                       WaitLadder ladder, ProgressObserver& observer) {
  Backoff backoff(ladder, observer);
  std::vector<transport::WaitSet::Entry> entries;
  for (;;) {
    bool moved = false;
    for (Execution* const execution : executions) moved = execution->advance() || moved;
    const auto complete = [](const Execution* execution) { return execution->complete(); };
    if (std::ranges::all_of(executions, complete)) return;
    if (!backoff.sleep_after(moved)) continue;
    entries.clear();
    for (const Execution* const execution : executions) execution->add_interests(entries);
    static_cast<void>(wait_set.wait(entries, Deadline::after(kIdlePeriod)));
  }
}

}  // namespace hccl::network
