// SPDX-License-Identifier: Apache-2.0
// Starts the library's threads with all signals blocked, so that the program's own threads handle
// the signals.
#pragma once

#include "base/errno_advice.h"
#include "base/error.h"
#include "base/text.h"

#include <system_error>
#include <thread>
#include <utility>

#include <pthread.h>
#include <signal.h>

namespace hccl {

// Blocks all signals in the calling thread while the object lives. Threads that it starts during
// that time inherit the signal mask.
class SignalBlock {
 public:
  SignalBlock() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalBlock() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalBlock(const SignalBlock&) = delete;
  SignalBlock& operator=(const SignalBlock&) = delete;

 private:
  sigset_t before_{};
};

// Starts a thread with all signals blocked. Throws Error(hcclSystemError).
template <class Body>
[[nodiscard]] std::thread start_quiet_thread(Body&& body) {
  const SignalBlock block;
  try {
    return std::thread(std::forward<Body>(body));
  } catch (const std::system_error& error) {
    throw Error(hcclSystemError, text("cannot start a thread: ", error.what(), "; ",
                                      advice_on_thread(error.code().value())));
  }
}

}  // namespace hccl
