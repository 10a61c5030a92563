// SPDX-License-Identifier: Apache-2.0
// pthread_cancel() may unwind a thread that is in a system call. A call into the library must not
// be unwound, because other threads and ranks wait for its results. Cancellation is therefore
// deferred until the call returns.
#pragma once

#include <pthread.h>

namespace hccl {

// Defers cancellation of the calling thread while the object lives.
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
