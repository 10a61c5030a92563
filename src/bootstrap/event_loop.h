// SPDX-License-Identifier: Apache-2.0
// An event loop with timers and descriptor waits. Hides Asio, which only .cpp files include.
#pragma once

#include "base/deadline.h"

#include <chrono>
#include <functional>
#include <memory>

namespace asio {
class io_context;
}

namespace hccl::bootstrap {

// The control thread runs one loop for the lifetime of the process. A joining rank runs its own
// loop in the joining thread. Only the thread that runs a loop may start or cancel the loop's
// timers and waits.
class EventLoop {
 public:
  EventLoop();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Opens the loop's descriptors (epoll, eventfd, timerfd) now, so that a failure is thrown here
  // and not by the first timer or wait. Later calls do nothing. Throws Error(hcclSystemError).
  void open();
  // Runs the next handler. Blocks until a handler is ready or the deadline has passed. Returns
  // whether a handler ran.
  bool run_one(Deadline deadline);
  [[nodiscard]] asio::io_context& context() noexcept;

 private:
  struct State;

  std::unique_ptr<State> state_;
};

// Calls a function once, after a delay. Destroying or restarting the timer cancels the call.
class LoopTimer {
 public:
  explicit LoopTimer(EventLoop& loop);
  ~LoopTimer();
  LoopTimer(const LoopTimer&) = delete;
  LoopTimer& operator=(const LoopTimer&) = delete;

  void start(Deadline::Duration delay, std::function<void()> call);
  void cancel();

 private:
  struct State;

  std::shared_ptr<State> state_;
};

// Waits for events on a descriptor, but does not own the descriptor. Destroying the object cancels
// its waits.
class DescriptorWait {
 public:
  explicit DescriptorWait(EventLoop& loop);
  ~DescriptorWait();
  DescriptorWait(const DescriptorWait&) = delete;
  DescriptorWait& operator=(const DescriptorWait&) = delete;

  // Registers the descriptor with the loop. Returns 0, or the errno of the failure.
  [[nodiscard]] int watch(int fd);
  // Each calls `call` once, when the descriptor becomes readable (or writable) or has an error. At
  // most one wait of each kind may be pending.
  void when_readable(std::function<void()> call);
  void when_writable(std::function<void()> call);
  // Cancels the waits and removes the descriptor from the loop. Must be called before the
  // descriptor is closed.
  void close() noexcept;

 private:
  struct State;

  std::shared_ptr<State> state_;
};

}  // namespace hccl::bootstrap
