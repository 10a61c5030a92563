// SPDX-License-Identifier: Apache-2.0
// The one control thread of the process: asleep in epoll, it runs the id servers and the process
// watches.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>

namespace asio {
class io_context;
}

namespace hccl::bootstrap {

// Room for one post() that cannot fail; part of the object that the task belongs to.
class ReservedPost {
 public:
  static constexpr std::size_t kBytes = 192;
  [[nodiscard]] void* room() noexcept { return room_.data(); }

 private:
  alignas(std::max_align_t) std::array<std::byte, kBytes> room_;
};

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
  // Runs `task` on the thread, after a start() some time. Throws std::bad_alloc.
  void post(std::function<void()> task);
  // The same for `task(owner)`, without memory of the heap: for what must happen when there is none
  // left. `reserved` is part of the owner and serves once.
  void post(ReservedPost& reserved, std::shared_ptr<void> owner,
            void (*task)(void* owner)) noexcept;
  // Returns whether the caller is the control thread.
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
