// SPDX-License-Identifier: Apache-2.0
// Runs executions to their end on the caller's thread: polls, then yields, then sleeps.
#pragma once

#include "base/waiter.h"
#include "executor/execution.h"

#include <chrono>
#include <span>

namespace hccl::executor {

// Lets a caller see to its own affairs, such as deadlines, while it waits.
class Watch {
 public:
  Watch() = default;
  virtual ~Watch() = default;
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // After every try; cheap. Throws to end it.
  virtual void glance() = 0;
  // While nothing moves: now and then, before every sleep, and so at least every `kLook`; whether
  // anything has moved since the last look. Throws to end it.
  virtual void look(bool moved) = 0;
};
inline constexpr std::chrono::milliseconds kLook{100};

// The back-off of a thread between its tries.
class Rest {
 public:
  Rest(WaitLadder ladder, Watch& watch) : ladder_(ladder), waiter_(ladder), watch_(watch) {}

  // After a try; whether to sleep now, for at most kLook.
  [[nodiscard]] bool after(bool moved);

 private:
  const WaitLadder ladder_;
  Waiter waiter_;
  Watch& watch_;
  bool moved_since_look_ = true;
  unsigned tries_ = 0;  // since anything moved
};

// All channels of a call. Throws what they and the watch throw.
void drive(std::span<Execution* const> executions, transport::WaitSet& wait_set, WaitLadder ladder,
           Watch& watch);

}  // namespace hccl::executor
