// SPDX-License-Identifier: Apache-2.0
// Runs an action at the end of a scope, even if an exception leaves the scope.
#pragma once

#include <utility>

namespace hccl {

template <class Action>
class ScopeExit {
 public:
  // The action must not throw.
  explicit ScopeExit(Action action) : action_(std::move(action)) {}
  ~ScopeExit() {
    if (!dismissed_) action_();
  }
  ScopeExit(const ScopeExit&) = delete;
  ScopeExit& operator=(const ScopeExit&) = delete;

  // Cancels the action.
  void dismiss() { dismissed_ = true; }

 private:
  Action action_;
  bool dismissed_ = false;
};

}  // namespace hccl
