// SPDX-License-Identifier: Apache-2.0
// The thread behind a stream: runs its queue when nobody waits for it.
#pragma once

#include "base/waiter.h"

#include <atomic>
#include <mutex>
#include <thread>

namespace hccl::device {

class Stream;

// After use the worker naps in steps short enough that work without a waiter starts within 200 us,
// so that an enqueue need not ring it (a system call); after 10 ms without use it sleeps and must
// be rung.
class StreamWorker {
 public:
  explicit StreamWorker(Stream& stream) : stream_(stream) {}
  ~StreamWorker() { stop(); }

  // The enqueuer's work must have been pushed with seq_cst order.
  [[nodiscard]] bool is_asleep() const noexcept { return asleep_.load(std::memory_order_seq_cst); }
  // Starts the thread at its first use.
  void ring();
  void stop();

 private:
  void run();
  void sleep_until_rung();
  [[nodiscard]] bool has_work() const;

  Stream& stream_;
  std::atomic<bool> asleep_{true};
  std::atomic<bool> started_{false};
  std::atomic<bool> stopping_{false};
  Doorbell bell_;
  std::mutex mutex_;  // starting and stopping
  std::thread thread_;
};

}  // namespace hccl::device
