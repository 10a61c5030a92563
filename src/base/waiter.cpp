// SPDX-License-Identifier: Apache-2.0
// Implements the waits, and the futex calls of the doorbell.
#include "base/waiter.h"

#include <ctime>

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hccl {
namespace {

std::atomic<bool> other_groups_share_cores{false};

void relax() noexcept {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");  // pauses on arm64, where `yield` is a no-op on most cores
#endif
}

}  // namespace

WaitLadder WaitLadder::within_process() noexcept {
  return other_groups_share_cores.load(std::memory_order_relaxed) ? sleeping() : yielding();
}

void WaitLadder::share_cores_with_other_groups() noexcept {
  other_groups_share_cores.store(true, std::memory_order_relaxed);
}

bool Waiter::poll_again(WaitBudget wait_budget) noexcept {
  if (step_ < ladder_.pauses) {
    ++step_;
    relax();
    return true;
  }
  if (wait_budget == WaitBudget::pauses_only && ladder_.pauses != 0) return false;
  if (step_ < ladder_.pauses + ladder_.yields) {
    ++step_;
    sched_yield();
    return true;
  }
  return false;
}

void Doorbell::ring_always(int count) noexcept {
  word_.fetch_add(1, std::memory_order_seq_cst);
  syscall(SYS_futex, &word_, FUTEX_WAKE, count, nullptr, nullptr, 0);
}

void Doorbell::ring_for(std::uint32_t events) noexcept {
  if (!has_sleepers()) return;
  word_.fetch_add(1, std::memory_order_seq_cst);
  syscall(SYS_futex, &word_, FUTEX_WAKE_BITSET, kEverybody, nullptr, nullptr, events);
}

// FUTEX_WAIT_BITSET takes an absolute time, not a duration.
void Doorbell::wait(std::uint32_t seen, std::chrono::nanoseconds timeout,
                    std::uint32_t events) noexcept {
  timespec end{};
  clock_gettime(CLOCK_MONOTONIC, &end);
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t fraction = end.tv_nsec + timeout.count() % kSecond;
  end.tv_sec += timeout.count() / kSecond + fraction / kSecond;
  end.tv_nsec = fraction % kSecond;
  syscall(SYS_futex, &word_, FUTEX_WAIT_BITSET, seen, &end, nullptr, events);
}

void SpinLock::lock() noexcept {
  while (taken_.exchange(true, std::memory_order_acquire)) {
    for (int tries = 0; taken_.load(std::memory_order_relaxed); ++tries) {
      if (tries < 50) {
        relax();
      } else {
        sched_yield();
      }
    }
  }
}

}  // namespace hccl
