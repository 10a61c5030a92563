// SPDX-License-Identifier: Apache-2.0
// pthread_cancel unwinds a thread from within system calls. The library has functions there that
// must not be unwound and work that others wait for, so cancellation waits until it returns.
#pragma once

#include <pthread.h>

namespace hccl {

// While it lives, the calling thread is not cancelled; a request stays pending.
class CancellationBlock {
 public:
  CancellationBlock() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~CancellationBlock() { pthread_setcancelstate(before_, nullptr); }
  CancellationBlock(const CancellationBlock&) = delete;
  CancellationBlock& operator=(const CancellationBlock&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace hccl
