// SPDX-License-Identifier: Apache-2.0
// The process's control thread. It sleeps in epoll, and runs the root servers, control links and
// process watches.
#pragma once

#include "bootstrap/event_loop.h"

#include <array>
#include <cstddef>
#include <functional>
#include <memory>

namespace hccl::bootstrap {

// Preallocated memory for one call of post(). It must be a member of the `owner` of that call.
class ReservedPost {
 public:
  static constexpr std::size_t kBytes = 192;
  [[nodiscard]] void* room() noexcept { return room_.data(); }

 private:
  alignas(std::max_align_t) std::array<std::byte, kBytes> room_;
};

// Thread safety: any thread may call any member, even during process exit, when tasks no longer
// run. In a forked child, stop() and post() do nothing.
class ControlThread {
 public:
  // Returns the only instance, which is never destroyed, so that destructors of other objects can
  // call it at exit.
  [[nodiscard]] static ControlThread& instance();

  ControlThread(const ControlThread&) = delete;
  ControlThread& operator=(const ControlThread&) = delete;

  // Starts the thread unless it is running. Throws Error(hcclInvalidUsage) in a forked child or
  // during process exit, and Error(hcclSystemError) if the thread cannot be started.
  void start();
  // Ends the thread. Blocks until the task in progress has ended, unless called from that task;
  // during process exit, blocks for at most 200 ms. Servers, links and watches resume when start()
  // is called again.
  void stop() noexcept;
  // Runs `task` on the thread, or after the next start() if the thread is stopped. Does not block.
  // Throws std::bad_alloc.
  void post(std::function<void()> task);
  // Runs task(owner) in the same way, but allocates nothing: for tasks that must run even when no
  // memory is left. `reserved` must be a member of `owner`, and can be used only once.
  void post(ReservedPost& reserved, std::shared_ptr<void> owner,
            void (*task)(void* owner)) noexcept;
  // Returns whether the calling thread is the control thread.
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
