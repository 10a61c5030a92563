// SPDX-License-Identifier: Apache-2.0
// A pidfd becomes readable when its process exits; the control thread waits for this. The pending
// wait shares ownership of the state, so the watch and the wait may end in either order.
#include "bootstrap/process_watch.h"

#include "base/log.h"
#include "base/peer_process.h"
#include "base/process.h"
#include "base/text.h"
#include "bootstrap/callback_gate.h"
#include "bootstrap/control_thread.h"
#include "bootstrap/event_loop.h"

#include <utility>
#include <vector>

namespace hccl::bootstrap {

struct ProcessWatch::State : std::enable_shared_from_this<State> {
  State(FileDescriptor process, std::function<void()> callback)
      : pidfd(std::move(process)),
        on_exit(std::move(callback)),
        wait(ControlThread::instance().loop()) {}

  // Runs on the control thread.
  void start() {
    if (!pidfd.valid()) return;
    if (const int error = wait.watch(pidfd.get()); error != 0) {
      log(LogLevel::error, "control", "cannot watch a process: ", system_error_text(error));
      return;
    }
    await_exit();
  }

  void await_exit() {
    wait.when_readable([self = shared_from_this()] {
      if (!has_exited(self->pidfd)) return self->await_exit();
      self->gate.call(self->on_exit);
    });
  }

  void cancel() {
    gate.close();
    // The control thread owns and closes the descriptor.
    ControlThread::instance().post(closing, shared_from_this(),
                                   [](void* self) { static_cast<State*>(self)->close(); });
  }

  // Keeps the state for ever in a forked child. The state's destructor would change the epoll set,
  // which the child shares with the parent, and might wait for a lock that was held at the fork.
  static void keep_for_ever(std::shared_ptr<State> state) {
    static auto* const kept = new std::vector<std::shared_ptr<State>>;
    kept->push_back(std::move(state));
  }

  void close() {
    wait.close();
    pidfd.reset();
    on_exit = nullptr;
  }

  FileDescriptor pidfd;
  std::function<void()> on_exit;
  DescriptorWait wait;
  CallbackGate gate;
  ReservedPost closing;
};

ProcessWatch::ProcessWatch(FileDescriptor pidfd, std::function<void()> on_exit) {
  ControlThread::instance().start();
  state_ = std::make_shared<State>(std::move(pidfd), std::move(on_exit));
  ControlThread::instance().post([state = state_] { state->start(); });
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
