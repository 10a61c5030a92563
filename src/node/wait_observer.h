// SPDX-License-Identifier: Apache-2.0
// Watches the waits of a call that is only a part of the program's call. A back end that divides a
// call into parts limits the waits of the whole call, so the engine sets no limits for the parts.
#pragma once

#include "base/deadline.h"

#include <chrono>
#include <string>
#include <vector>

namespace hccl::node {

class WaitObserver {
 public:
  // The longest sleep between two calls to on_sleep().
  static constexpr std::chrono::milliseconds kPeriod{50};

  WaitObserver() = default;
  virtual ~WaitObserver() = default;
  WaitObserver(const WaitObserver&) = delete;
  WaitObserver& operator=(const WaitObserver&) = delete;

  // Called before each sleep. `awaited`: the ranks, numbered as in the whole communicator, that
  // delay the call. `first`: whether the call has not slept before on its current path. Throws
  // Error if the call must end; the error then fails the communicator.
  virtual void on_sleep(const std::vector<int>& awaited, bool first) = 0;
  // Called when the calls of this node's ranks do not match. `text` describes these calls. May ask
  // the ranks of other nodes which rank's call differs. Throws an Error that names that rank or, if
  // that rank is not found, an Error with `text`.
  [[noreturn]] virtual void on_mismatch(const std::string& text) = 0;
};

}  // namespace hccl::node
