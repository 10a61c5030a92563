// SPDX-License-Identifier: Apache-2.0
// The loop that every call across endpoints spends its time in.
#include "executor/drive.h"

#include <algorithm>
#include <utility>

namespace hccl::executor {

void drive(std::span<Execution* const> executions, transport::WaitSet& wait_set, WaitLadder ladder,
           Watch& watch) {
  Waiter waiter(ladder);
  std::vector<transport::WaitSet::Entry> entries;
  bool moved_since_look = true;
  for (;;) {
    bool moved = false;
    for (Execution* const execution : executions) moved = execution->advance() || moved;
    const auto complete = [](const Execution* execution) { return execution->complete(); };
    if (std::ranges::all_of(executions, complete)) return;
    watch.glance();
    if (moved) {
      moved_since_look = true;
      waiter = Waiter(ladder);
    } else if (!waiter.poll_again()) {
      watch.look(std::exchange(moved_since_look, false));
      entries.clear();
      for (const Execution* const execution : executions) execution->add_interests(entries);
      static_cast<void>(wait_set.wait(entries, Deadline::after(kLook)));
    }
  }
}

}  // namespace hccl::executor
