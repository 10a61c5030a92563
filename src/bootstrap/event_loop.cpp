// SPDX-License-Identifier: Apache-2.0
// A timer or wait may be destroyed before its handler runs, so the handler shares ownership of the
// state.
#include "bootstrap/event_loop.h"

#include "base/errno_advice.h"
#include "base/error.h"
#include "base/file_descriptor.h"
#include "base/text.h"

#include <cstdint>
#include <system_error>
#include <utility>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>

namespace hccl::bootstrap {

// context{1}: only one thread runs the context, so Asio need not wake other threads.
struct EventLoop::State {
  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
  bool is_open = false;
};

EventLoop::EventLoop() : state_(std::make_unique<State>()) {}

EventLoop::~EventLoop() = default;

void EventLoop::open() {
  if (state_->is_open) return;
  const StandardStreamPlaceholders placeholders;
  try {
    const asio::steady_timer first(state_->context);
  } catch (const std::system_error& error) {
    throw Error(hcclSystemError, text("cannot watch sockets with epoll: ", error.code().message(),
                                      "; ", advice_on(error.code().value(), "raise ulimit -n")));
  }
  state_->is_open = true;
}

bool EventLoop::run_one(Deadline deadline) {
  asio::io_context& context = state_->context;
  if (deadline.is_never()) return context.run_one() > 0;
  // If the deadline has passed, still handles data that has arrived: this process may have been
  // stopped until now.
  return context.run_one_until(deadline.time()) > 0 || context.poll_one() > 0;
}

asio::io_context& EventLoop::context() noexcept { return state_->context; }

struct LoopTimer::State {
  explicit State(EventLoop& loop) : timer(loop.context()) {}

  asio::steady_timer timer;
  std::function<void()> call;
  std::uint64_t starts = 0;  // a handler with an older number belongs to a cancelled start
};

LoopTimer::LoopTimer(EventLoop& loop) : state_(std::make_shared<State>(loop)) {}

LoopTimer::~LoopTimer() {
  if (state_->call) cancel();
}

void LoopTimer::start(Deadline::Duration delay, std::function<void()> call) {
  state_->call = std::move(call);
  state_->timer.expires_after(delay);
  state_->timer.async_wait(
      [state = state_, start = ++state_->starts](const std::error_code& error) {
        if (error || state->starts != start) return;
        std::exchange(state->call, nullptr)();
      });
}

void LoopTimer::cancel() {
  ++state_->starts;
  state_->call = nullptr;
  state_->timer.cancel();
}

struct DescriptorWait::State {
  explicit State(EventLoop& loop) : descriptor(loop.context()) {}

  asio::posix::stream_descriptor descriptor;
  bool is_watching = false;
};

DescriptorWait::DescriptorWait(EventLoop& loop) : state_(std::make_shared<State>(loop)) {}

DescriptorWait::~DescriptorWait() { close(); }

int DescriptorWait::watch(int fd) {
  std::error_code error;
  state_->descriptor.assign(fd, error);
  state_->is_watching = !error;
  return error.value();
}

void DescriptorWait::when_readable(std::function<void()> call) {
  state_->descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                                [state = state_, call = std::move(call)](const std::error_code&) {
                                  if (state->is_watching) call();
                                });
}

void DescriptorWait::when_writable(std::function<void()> call) {
  state_->descriptor.async_wait(asio::posix::stream_descriptor::wait_write,
                                [state = state_, call = std::move(call)](const std::error_code&) {
                                  if (state->is_watching) call();
                                });
}

// A second call, such as a destructor's on another thread, does not write to the state, because a
// cancelled handler may be reading it.
void DescriptorWait::close() noexcept {
  if (!state_->is_watching) return;
  state_->is_watching = false;
  static_cast<void>(state_->descriptor.release());
}

}  // namespace hccl::bootstrap
