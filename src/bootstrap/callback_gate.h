// SPDX-License-Identifier: Apache-2.0
// Runs callbacks on the control thread until somebody closes the gate.
#pragma once

#include "bootstrap/control_thread.h"

#include <condition_variable>
#include <mutex>

namespace hccl::bootstrap {

class CallbackGate {
 public:
  // On the control thread: calls `callback` unless the gate is closed.
  template <class Callback>
  void call(const Callback& callback) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return;
      running_ = true;
    }
    const EndOfCall end{*this};
    callback();
  }

  // From any thread: no callback begins from now on. Blocks until a running one has ended, unless
  // that one is the caller.
  void close() {
    std::unique_lock lock(mutex_);
    closed_ = true;
    if (!ControlThread::instance().is_current()) ended_.wait(lock, [&] { return !running_; });
  }

 private:
  // Wakes the threads that wait for the callback, however it ends.
  struct EndOfCall {
    explicit EndOfCall(CallbackGate& owner) : gate(owner) {}
    ~EndOfCall() {
      const std::lock_guard lock(gate.mutex_);
      gate.running_ = false;
      gate.ended_.notify_all();
    }
    EndOfCall(const EndOfCall&) = delete;
    EndOfCall& operator=(const EndOfCall&) = delete;

    CallbackGate& gate;
  };

  std::mutex mutex_;
  std::condition_variable ended_;
  bool closed_ = false;
  bool running_ = false;
};

}  // namespace hccl::bootstrap
