// SPDX-License-Identifier: Apache-2.0
#include "receive_thread.h"

#include <utility>

#include <c10/util/Exception.h>

namespace hccl_torch {

ReceiveThread::~ReceiveThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void ReceiveThread::post(DeferredReceive receive) {
  {
    const std::lock_guard lock(mutex_);
    if (!thread_.joinable()) thread_ = std::thread(&ReceiveThread::run, this);
    receives_.push_back(std::move(receive));
  }
  changed_.notify_one();
}

bool ReceiveThread::is_busy() {
  const std::lock_guard lock(mutex_);
  return !receives_.empty();
}

void ReceiveThread::require_running() const {
  TORCH_CHECK_WITH(DistBackendError, !stopping_, "the process group has been destroyed");
}

void ReceiveThread::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || !receives_.empty(); });
    if (receives_.empty()) return;
    const DeferredReceive receive = receives_.front();
    lock.unlock();
    serve_first(receive);
    lock.lock();
    receives_.pop_front();
  }
}

void ReceiveThread::serve_first(const DeferredReceive& receive) {
  try {
    serve_(receive);
  } catch (const c10::Error& error) {
    receive.work->fail(error.what_without_backtrace());
  } catch (const std::exception& error) {
    receive.work->fail(error.what());
  }
}

}  // namespace hccl_torch
