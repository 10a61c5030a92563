// SPDX-License-Identifier: Apache-2.0
// Runs callbacks on the control thread until close() is called.
#pragma once

#include "bootstrap/control_thread.h"

#include <condition_variable>
#include <mutex>

namespace hccl::bootstrap {

class CallbackGate {
 public:
  // Calls callback() unless the gate is closed. Thread safety: control thread only.
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

  // Prevents all later callbacks. Blocks until a running callback has ended, unless called from
  // that callback. Thread safety: any thread.
  void close() {
    std::unique_lock lock(mutex_);
    closed_ = true;
    if (!ControlThread::instance().is_current()) ended_.wait(lock, [&] { return !running_; });
  }

 private:
  // Wakes the threads that wait in close(), whether the callback returns or throws.
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
