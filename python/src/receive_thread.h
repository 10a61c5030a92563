// SPDX-License-Identifier: Apache-2.0
// Receives that cannot be queued when they are called, and the thread that queues them.
#pragma once

#include "work.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include <ATen/core/Tensor.h>

namespace hccl_torch {

struct DeferredReceive {
  c10::intrusive_ptr<Work> work;
  at::Tensor tensor;
  int tag = 0;
  std::chrono::steady_clock::time_point deadline;
};

// Serves receives one by one, in the order of the posts. The first post starts the thread.
class ReceiveThread {
 public:
  using Serve = std::function<void(const DeferredReceive&)>;

  // `serve` runs on the thread; what it throws fails the receive's work.
  explicit ReceiveThread(Serve serve) : serve_(std::move(serve)) {}
  // Blocks until `serve` has returned for every receive; is_stopping() tells it to give up.
  ~ReceiveThread();
  ReceiveThread(const ReceiveThread&) = delete;
  ReceiveThread& operator=(const ReceiveThread&) = delete;

  // Does not block. Throws std::system_error if the thread cannot be started.
  void post(DeferredReceive receive);
  // Returns whether receives have been posted that have not been served.
  [[nodiscard]] bool is_busy();
  // Throws c10::DistBackendError while this object is being destroyed.
  void require_running() const;

 private:
  void run();
  void serve_first(const DeferredReceive& receive);

  const Serve serve_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<DeferredReceive> receives_;  // the first is being served
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace hccl_torch
