// SPDX-License-Identifier: Apache-2.0
// Naps while the stream is in use, and sleeps when it is not.
#include "device/stream_worker.h"

#include "base/quiet_thread.h"
#include "device/stream.h"

#include <chrono>

#include <sys/prctl.h>

namespace hccl::device {
namespace {

using namespace std::chrono_literals;
constexpr auto kNap = 160us;
constexpr auto kLongNap = 960us;
constexpr auto kAttended = 5ms;
constexpr auto kInUse = 10ms;

// Returns the time until the clock shows a multiple of `period`. If the workers of all processes
// wake up at the same time, their timers need only one interrupt.
std::chrono::nanoseconds until_next(std::chrono::nanoseconds period) {
  return period - std::chrono::steady_clock::now().time_since_epoch() % period;
}

}  // namespace

void StreamWorker::start() {
  const std::lock_guard lock(mutex_);
  if (started_.load(std::memory_order_relaxed)) return;
  thread_ = start_quiet_thread([this] { run(); });
  started_.store(true, std::memory_order_release);
}

void StreamWorker::ring() {
  if (asleep_.exchange(false, std::memory_order_seq_cst)) bell_.ring_always(1);
}

void StreamWorker::stop() {
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable()) return;
  stopping_.store(true, std::memory_order_seq_cst);
  bell_.ring_always();
  thread_.join();
}

bool StreamWorker::has_work() const { return stream_.queued() != 0; }

void StreamWorker::sleep_until_rung() {
  const auto awake = [this] {
    return stopping_.load(std::memory_order_seq_cst) ||
           (has_work() && !stream_.owned_.load(std::memory_order_seq_cst) &&
            !stream_.has_waiters());
  };
  for (;;) {
    asleep_.store(true, std::memory_order_seq_cst);
    if (awake()) break;
    bell_.sleep(1h, [&] { return awake() || !asleep_.load(std::memory_order_seq_cst); });
  }
  asleep_.store(false, std::memory_order_seq_cst);
}

void StreamWorker::nap_long() {
  naps_long_.store(true, std::memory_order_seq_cst);
  bell_.sleep(until_next(kLongNap), [this] {
    return stopping_.load(std::memory_order_seq_cst) || !naps_long_.load(std::memory_order_seq_cst);
  });
  naps_long_.store(false, std::memory_order_seq_cst);
}

void StreamWorker::hurry() {
  if (naps_long_.load(std::memory_order_seq_cst) &&
      naps_long_.exchange(false, std::memory_order_seq_cst)) {
    bell_.ring_always(1);
  }
}

void StreamWorker::run() {
  pthread_setname_np(pthread_self(), "hccl-stream");
  prctl(PR_SET_TIMERSLACK, 20'000UL);
  asleep_.store(false, std::memory_order_seq_cst);
  std::uint64_t seen = 0;
  auto last_use = std::chrono::steady_clock::now();
  auto last_work = last_use;  // the last time that this thread ran all queued work
  while (!stopping_.load(std::memory_order_seq_cst)) {
    const bool wanted = has_work() && !stream_.has_waiters() &&
                        !stream_.runs_opportunistically_.exchange(false, std::memory_order_relaxed);
    if (wanted && stream_.try_own()) {
      const bool ran_all = stream_.run_owned(stream_.pushed(), Stream::Manner::until_wanted);
      stream_.disown();
      seen = stream_.pushed();
      last_use = std::chrono::steady_clock::now();
      if (ran_all) last_work = last_use;  // otherwise another thread wants to run the queue
      continue;
    }
    const auto now = std::chrono::steady_clock::now();
    if (const std::uint64_t pushed = stream_.pushed(); pushed != seen) {
      seen = pushed;
      last_use = now;
    }
    if (now - last_use < kInUse) {
      if (now - last_work < kAttended) {
        std::this_thread::sleep_for(until_next(kNap));
      } else {
        nap_long();
      }
    } else {
      sleep_until_rung();
      last_use = std::chrono::steady_clock::now();
    }
  }
}

}  // namespace hccl::device
