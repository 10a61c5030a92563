// SPDX-License-Identifier: Apache-2.0
// The thread that runs a stream's queue when no other thread waits for the stream.
#pragma once

#include "base/waiter.h"

#include <atomic>
#include <mutex>
#include <thread>

namespace hccl::device {

class Stream;

// While the stream is in use, the worker takes short naps: work that no thread waits for starts
// within 200 us, and enqueueing needs no system call to wake the worker. After 10 ms without use,
// the worker sleeps until it is woken.
//
// If the worker has run no work in the last 5 ms, because threads of the program have run it, the
// naps become longer: short naps took a quarter of the CPU time when cores were oversubscribed.
// Work that no thread waits for then starts within 1 ms, or as soon as it is queried.
class StreamWorker {
 public:
  explicit StreamWorker(Stream& stream) : stream_(stream) {}
  ~StreamWorker() { stop(); }

  // Returns whether ring() is needed to wake the worker. Call it after the work has been pushed
  // with seq_cst order.
  [[nodiscard]] bool is_asleep() const noexcept { return asleep_.load(std::memory_order_seq_cst); }
  // Starts the thread if it is not running. Call it before work is pushed. Throws
  // Error(hcclSystemError) if the thread cannot be started.
  void start_once() {
    if (!started_.load(std::memory_order_acquire)) [[unlikely]]
      start();
  }
  void ring();
  // Ends a long nap. Call it when the program queries work that no thread has begun.
  void hurry();
  void stop();

 private:
  void start();
  void run();
  void sleep_until_rung();
  void nap_long();
  [[nodiscard]] bool has_work() const;

  Stream& stream_;
  std::atomic<bool> asleep_{true};
  std::atomic<bool> naps_long_{false};
  std::atomic<bool> started_{false};
  std::atomic<bool> stopping_{false};
  Doorbell bell_;
  std::mutex mutex_;  // guards starting and stopping
  std::thread thread_;
};

}  // namespace hccl::device
