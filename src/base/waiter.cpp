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

void Doorbell::wait(std::uint32_t seen, std::chrono::nanoseconds timeout) noexcept {
  const auto nanoseconds = timeout.count();
  timespec limit{};
  limit.tv_sec = nanoseconds / 1'000'000'000;
  limit.tv_nsec = nanoseconds % 1'000'000'000;
  syscall(SYS_futex, &word_, FUTEX_WAIT, seen, &limit, nullptr, 0);
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
