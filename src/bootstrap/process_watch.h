// SPDX-License-Identifier: Apache-2.0
// Detects the exit of another process.
#pragma once

#include "base/file_descriptor.h"

#include <functional>
#include <memory>

namespace hccl::bootstrap {

// Calls on_exit() once, on the control thread, after the process of `pidfd` has exited; never calls
// it if `pidfd` is invalid or cannot be watched. Destroying the watch cancels the call. The
// destructor blocks until a callback in progress has returned, unless it runs within that callback.
class ProcessWatch {
 public:
  ProcessWatch() = default;
  ProcessWatch(FileDescriptor pidfd, std::function<void()> on_exit);
  ProcessWatch(ProcessWatch&&) noexcept;
  ProcessWatch& operator=(ProcessWatch&&) noexcept;
  ~ProcessWatch();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace hccl::bootstrap
