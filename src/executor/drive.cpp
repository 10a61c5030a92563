// SPDX-License-Identifier: Apache-2.0
// The loop that every call across endpoints spends its time in.
#include "executor/drive.h"

#include <algorithm>
#include <utility>

namespace hccl::executor {

// Where many share the cores, giving one away can take long: the clock counts then, too.
bool Rest::after(bool moved) {
  constexpr unsigned kTriesALook = 32;
  watch_.glance();
  if (moved) {
    moved_since_look_ = true;
    tries_ = 0;
    waiter_ = Waiter(ladder_);
    return false;
  }
  const bool sleeps = !waiter_.poll_again();
  if (sleeps || ++tries_ % kTriesALook == 0) watch_.look(std::exchange(moved_since_look_, false));
  return sleeps;
}

void drive(std::span<Execution* const> executions, transport::WaitSet& wait_set, WaitLadder ladder,
           Watch& watch) {
  Rest rest(ladder, watch);
  std::vector<transport::WaitSet::Entry> entries;
  for (;;) {
    bool moved = false;
    for (Execution* const execution : executions) moved = execution->advance() || moved;
    const auto complete = [](const Execution* execution) { return execution->complete(); };
    if (std::ranges::all_of(executions, complete)) return;
    if (!rest.after(moved)) continue;
    entries.clear();
    for (const Execution* const execution : executions) execution->add_interests(entries);
    static_cast<void>(wait_set.wait(entries, Deadline::after(kLook)));
  }
}

}  // namespace hccl::executor
