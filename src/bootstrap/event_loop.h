// SPDX-License-Identifier: Apache-2.0
// An Asio event loop, and what objects wait for on one: a point in time, and a descriptor that
// becomes ready. Only the sources that implement these include Asio.
#pragma once

#include "base/deadline.h"

#include <chrono>
#include <functional>
#include <memory>

namespace asio {
class io_context;
}

namespace hccl::bootstrap {

// The control thread runs one for as long as the process lives, a joining rank runs its own in the
// thread that joins. Everything that waits on a loop belongs to the thread that runs it.
class EventLoop {
 public:
  EventLoop();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Opens the loop's descriptors (epoll, eventfd, timerfd), which its first timer or descriptor
  // needs. Later calls do nothing. Throws Error(hcclSystemError).
  void open();
  // Runs the next handler. Blocks until there is one, or until the deadline. Returns whether one
  // ran.
  bool run_one(Deadline deadline);
  [[nodiscard]] asio::io_context& context() noexcept;

 private:
  struct State;

  std::unique_ptr<State> state_;
};

// Calls a function once, after a delay. Destroying the timer, like starting it again, cancels that.
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

// Waits for a descriptor that somebody else owns. Destroying the object cancels its waits.
class DescriptorWait {
 public:
  explicit DescriptorWait(EventLoop& loop);
  ~DescriptorWait();
  DescriptorWait(const DescriptorWait&) = delete;
  DescriptorWait& operator=(const DescriptorWait&) = delete;

  // Registers the descriptor with the loop. Returns 0, or the errno of the failure.
  [[nodiscard]] int watch(int fd);
  // Calls `call` once, when the descriptor is readable or has an error. At most one such wait at a
  // time.
  void when_readable(std::function<void()> call);
  void when_writable(std::function<void()> call);
  // Cancels the waits and forgets the descriptor. Call it before the descriptor is closed.
  void close() noexcept;

 private:
  struct State;

  std::shared_ptr<State> state_;
};

}  // namespace hccl::bootstrap
