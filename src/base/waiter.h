// SPDX-License-Identifier: Apache-2.0
// How a thread waits for another: a bounded ladder of pauses and yields, then a futex. Nothing
// spins without a bound, because ranks may outnumber cores.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace hccl {

// How often to pause, and then to yield, before sleeping.
struct WaitLadder {
  std::uint32_t pauses = 0;
  std::uint32_t yields = 0;
  const char* name = "sleeping";  // for the log

  // Every waiter has a core of its own: pause for a microsecond first. Longer pauses gained
  // nothing, and cost two thirds more time where another program held one of the cores.
  static constexpr WaitLadder spinning() { return {40, 1000, "spinning"}; }
  // Waiters share cores: give the core away at once, for about a millisecond.
  static constexpr WaitLadder yielding() { return {0, 1000, "yielding"}; }
  // Waiters share cores with threads that sched_yield() does not let run: torchrun, for one, gives
  // each rank a session and so a scheduling group of its own. A thread that yields there keeps its
  // core for the rest of its time slice, about 3 ms; one that sleeps gives it away.
  static constexpr WaitLadder sleeping() { return {0, 0, "sleeping"}; }
  // How the threads of this process wait for each other: by yielding, which reaches them all, or by
  // sleeping once a communicator has found that ranks of other scheduling groups share the cores.
  [[nodiscard]] static WaitLadder within_process() noexcept;
  // Makes within_process() return sleeping() from now on.
  static void share_cores_with_other_groups() noexcept;
};

// How long to wait for work that can be resumed later: to the end of the ladder, without sleeping,
// or only through the pauses, where waiters have cores of their own.
enum class WaitBudget : std::uint8_t { unlimited, no_sleep, pauses_only };

// One wait. poll_again() pauses or yields once and returns true, or returns false once the ladder
// or the budget is used up: the caller then sleeps, or returns.
class Waiter {
 public:
  explicit Waiter(WaitLadder ladder) noexcept : ladder_(ladder) {}
  [[nodiscard]] bool poll_again(WaitBudget wait_budget = WaitBudget::unlimited) noexcept;

 private:
  WaitLadder ladder_;
  std::uint32_t step_ = 0;
};

// A futex doorbell that may live in shared memory. The ringer stores the change before it calls
// ring(). The sleeper registers, looks for the change once more, and then sleeps. Neither can miss
// the other, because registering and looking for sleepers are both sequentially consistent.
class Doorbell {
 public:
  // Returns whether a thread sleeps or is about to. The caller must have stored the change with
  // seq_cst order.
  [[nodiscard]] bool has_sleepers() const noexcept {
    return sleepers_.load(std::memory_order_seq_cst) != 0;
  }
  // Wakes up to `count` sleepers, if there are any.
  void ring(int count = kEverybody) noexcept {
    if (has_sleepers()) ring_always(count);
  }
  void ring_always(int count = kEverybody) noexcept;

  // Sleeps until the bell rings or `timeout` has passed, unless `ready()` already returns true.
  template <class Ready>
  void sleep(std::chrono::nanoseconds timeout, Ready ready) noexcept {
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    const std::uint32_t seen = word_.load(std::memory_order_seq_cst);
    if (!ready()) wait(seen, timeout);
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
  }

  static constexpr int kEverybody = 0x7fffffff;

 private:
  void wait(std::uint32_t seen, std::chrono::nanoseconds timeout) noexcept;

  std::atomic<std::uint32_t> word_{0};
  std::atomic<std::uint32_t> sleepers_{0};
};

// A lock for sections of a few dozen instructions. A thread that finds it taken pauses, then
// yields.
class SpinLock {
 public:
  void lock() noexcept;
  void unlock() noexcept { taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> taken_{false};
};

}  // namespace hccl
