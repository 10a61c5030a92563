// SPDX-License-Identifier: Apache-2.0
// The thread that runs a stream's queue when no other thread waits for the stream.
#pragma once

#include "base/waiter.h"

#include <atomic>
#include <mutex>
#include <thread>

namespace hccl::device {

class Stream;

// While the stream is in use, the worker takes naps so short that work without a waiter starts
// within 200 us and no enqueue needs a system call to wake it. After 10 ms without use it sleeps
// until it is woken. The naps are longer once threads of the program have run all work for 5 ms,
// because with more ranks than cores the short naps took a quarter of the time. Then the first work
// without a waiter starts within 1 ms, or when it is queried.
class StreamWorker {
 public:
  explicit StreamWorker(Stream& stream) : stream_(stream) {}
  ~StreamWorker() { stop(); }

  // Returns whether ring() must wake the worker. Call it after pushing the work with seq_cst order.
  [[nodiscard]] bool is_asleep() const noexcept { return asleep_.load(std::memory_order_seq_cst); }
  // Starts the thread unless it runs. Call it before pushing work. Throws Error(hcclSystemError) if
  // no thread can be started.
  void start_once() {
    if (!started_.load(std::memory_order_acquire)) [[unlikely]]
      start();
  }
  void ring();
  // Ends a long nap, because the program asks for work that no thread has begun.
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
