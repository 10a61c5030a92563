// SPDX-License-Identifier: Apache-2.0
// The one control thread of the process. It sleeps in epoll, and runs the root servers, control
// links and process watches.
#pragma once

#include "bootstrap/event_loop.h"

#include <array>
#include <cstddef>
#include <functional>
#include <memory>

namespace hccl::bootstrap {

// Memory for one post() that cannot fail. Part of the object that the task belongs to.
class ReservedPost {
 public:
  static constexpr std::size_t kBytes = 192;
  [[nodiscard]] void* room() noexcept { return room_.data(); }

 private:
  alignas(std::max_align_t) std::array<std::byte, kBytes> room_;
};

// Starts on first use. All members may be called from any thread, also while the process exits; by
// then nothing runs any more.
class ControlThread {
 public:
  // Never destroyed, so that destructors of other objects at exit can call it.
  [[nodiscard]] static ControlThread& instance();

  ControlThread(const ControlThread&) = delete;
  ControlThread& operator=(const ControlThread&) = delete;

  // Throws Error(hcclInvalidUsage) in a forked child, Error(hcclSystemError) if the thread cannot
  // be started.
  void start();
  // Ends the thread. Blocks until the task in progress has ended, unless that is the caller.
  // Servers, links and watches go on after the next start().
  void stop() noexcept;
  // Runs `task` on the thread, or after the next start(). Throws std::bad_alloc.
  void post(std::function<void()> task);
  // Runs `task(owner)` likewise, but allocates nothing: for tasks that must run when no memory is
  // left. `reserved` is part of the owner and serves once.
  void post(ReservedPost& reserved, std::shared_ptr<void> owner,
            void (*task)(void* owner)) noexcept;
  // Returns whether the caller is the control thread.
  [[nodiscard]] bool is_current() const noexcept;
  [[nodiscard]] EventLoop& loop() noexcept;

 private:
  struct State;

  ControlThread();
  ~ControlThread() = default;
  static void* run(void* self);
  static void stop_at_exit();

  State* state_;
};

}  // namespace hccl::bootstrap
