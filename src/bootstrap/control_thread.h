// SPDX-License-Identifier: Apache-2.0
// The one control thread of the process: asleep in epoll, it runs the id servers and the process
// watches.
#pragma once

#include <functional>

namespace asio {
class io_context;
}

namespace hccl::bootstrap {

// Starts on first use and never wakes up by itself. All members may be called from any thread, also
// while the process exits; then nothing runs any more.
class ControlThread {
 public:
  // Never destroyed, so that calls from other objects' destructors at exit find it.
  [[nodiscard]] static ControlThread& instance();

  ControlThread(const ControlThread&) = delete;
  ControlThread& operator=(const ControlThread&) = delete;

  // Throws Error(hcclInvalidUsage) in a forked child, Error(hcclSystemError) if no thread can be
  // made.
  void start();
  // Ends the thread, waiting for the task in progress unless called by it; what is registered stays
  // and goes on after the next start().
  void stop() noexcept;
  // Runs `task` on the thread, after a start() some time.
  void post(std::function<void()> task) noexcept;
  // Whether the caller is the control thread.
  [[nodiscard]] bool is_current() const noexcept;
  [[nodiscard]] asio::io_context& context() noexcept;

 private:
  struct State;

  ControlThread();
  ~ControlThread() = default;
  static void* run(void* self);
  static void stop_at_exit();

  State* state_;
};

}  // namespace hccl::bootstrap
