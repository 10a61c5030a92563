// SPDX-License-Identifier: Apache-2.0
// A watch is an Asio wait for the pidfd to become readable. Asio objects belong to the control
// thread; the state is shared with it so that either side may go first.
#include "bootstrap/process_watch.h"

#include "base/error.h"
#include "base/peer_process.h"
#include "base/process.h"
#include "base/text.h"
#include "bootstrap/callback_gate.h"
#include "bootstrap/control_thread.h"

#include <cerrno>
#include <vector>

#include <asio/posix/stream_descriptor.hpp>

namespace hccl::bootstrap {

struct ProcessWatch::State : std::enable_shared_from_this<State> {
  State(FileDescriptor process, std::function<void()> callback)
      : pidfd(std::move(process)),
        on_exit(std::move(callback)),
        descriptor(ControlThread::instance().context()) {}

  // On the control thread: waits, and again after a wake-up that was not the exit.
  void wait() {
    if (!descriptor.is_open()) descriptor.assign(pidfd.get());
    descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                          [self = shared_from_this()](const std::error_code& error) {
                            if (!error) self->woken();
                          });
  }

  void woken() {
    if (!has_exited(pidfd)) return wait();
    gate.call(on_exit);
  }

  void cancel() {
    gate.close();
    // The descriptor is closed by its owner, the control thread; until then it stays open.
    ControlThread::instance().post(closing, shared_from_this(),
                                   [](void* self) { static_cast<State*>(self)->close(); });
  }

  // In a forked child the epoll set is the parent's and locks may be held: nothing of it may be
  // touched.
  static void keep_for_ever(std::shared_ptr<State> state) {
    static auto* const kept = new std::vector<std::shared_ptr<State>>;
    kept->push_back(std::move(state));
  }

  void close() {
    std::error_code ignored;
    if (descriptor.is_open()) {
      descriptor.cancel(ignored);
      static_cast<void>(descriptor.release());
    }
    pidfd.reset();
    on_exit = nullptr;
  }

  FileDescriptor pidfd;
  std::function<void()> on_exit;
  asio::posix::stream_descriptor descriptor;
  CallbackGate gate;
  ReservedPost closing;
};

ProcessWatch::ProcessWatch(FileDescriptor pidfd, std::function<void()> on_exit) {
  ControlThread::instance().start();
  state_ = std::make_shared<State>(std::move(pidfd), std::move(on_exit));
  ControlThread::instance().post([state = state_] {
    if (state->pidfd.valid()) state->wait();
  });
}

ProcessWatch::ProcessWatch(ProcessWatch&&) noexcept = default;

ProcessWatch& ProcessWatch::operator=(ProcessWatch&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

ProcessWatch::~ProcessWatch() {
  if (!state_) return;
  if (is_forked_child()) {
    State::keep_for_ever(std::move(state_));
    return;
  }
  state_->cancel();
}

}  // namespace hccl::bootstrap
