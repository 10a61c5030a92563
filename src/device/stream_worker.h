// SPDX-License-Identifier: Apache-2.0
// The thread behind a stream: runs its queue when no thread waits for it.
#pragma once

#include "base/waiter.h"

#include <atomic>
#include <mutex>
#include <thread>

namespace hccl::device {

class Stream;

// After use the worker naps in steps so short that work without a waiter starts within 200 us, and
// an enqueue need not wake it by a system call; after 10 ms without use it sleeps and must be
// woken. The steps are longer once the program has waited for all its work itself for 5 ms, because
// with more ranks than cores the naps took a quarter of the time. Then the first work without a
// waiter starts within 1 ms, or when it is queried.
class StreamWorker {
 public:
  explicit StreamWorker(Stream& stream) : stream_(stream) {}
  ~StreamWorker() { stop(); }

  // Call after the work was pushed with seq_cst order.
  [[nodiscard]] bool is_asleep() const noexcept { return asleep_.load(std::memory_order_seq_cst); }
  // Call before the first work is pushed. Throws Error(hcclSystemError) if no thread can be
  // started.
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
