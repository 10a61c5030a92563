// SPDX-License-Identifier: Apache-2.0
// How a thread waits for another thread: it pauses and yields a limited number of times (the
// ladder), then sleeps on a futex. No thread spins without a limit, because there may be more ranks
// than cores.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace hccl {

// The number of pauses, and then of yields, before a thread sleeps.
struct WaitLadder {
  std::uint32_t pauses = 0;
  std::uint32_t yields = 0;
  const char* name = "sleeping";  // for the log

  // For waiters that each have a core: pause for about a microsecond before yielding. Longer pauses
  // brought no gain, and took two thirds more time when another program held one of the cores.
  static constexpr WaitLadder spinning() { return {40, 1000, "spinning"}; }
  // For waiters that share cores: yield the core at once, and repeatedly for about a millisecond.
  static constexpr WaitLadder yielding() { return {0, 1000, "yielding"}; }
  // For waiters that share cores with threads of other scheduling groups, which sched_yield() does
  // not let run. For example, torchrun starts each rank in a session of its own, and so in a
  // scheduling group of its own. A thread that yields then keeps its core for the rest of its time
  // slice, about 3 ms; a thread that sleeps releases the core.
  static constexpr WaitLadder sleeping() { return {0, 0, "sleeping"}; }
  // Returns how the threads of this process wait for each other. They yield, which lets all of them
  // run, until a communicator finds that ranks of other scheduling groups share the cores; then
  // they sleep.
  [[nodiscard]] static WaitLadder within_process() noexcept;
  // Makes within_process() return sleeping() from now on.
  static void share_cores_with_other_groups() noexcept;
};

// How long a wait for work that can be resumed later may last: no limit; the whole ladder but no
// sleep; or only the pauses of the ladder, if it has any.
enum class WaitBudget : std::uint8_t { unlimited, no_sleep, pauses_only };

// One wait. poll_again() pauses or yields and returns true, or returns false when the ladder or the
// budget is used up. The caller must then sleep or return.
class Waiter {
 public:
  explicit Waiter(WaitLadder ladder) noexcept : ladder_(ladder) {}
  [[nodiscard]] bool poll_again(WaitBudget wait_budget = WaitBudget::unlimited) noexcept;

 private:
  WaitLadder ladder_;
  std::uint32_t step_ = 0;
};

// A futex doorbell that may lie in shared memory. The ringer stores its change before it calls
// ring(). The sleeper registers, checks for the change once more, and then sleeps. No wake-up is
// lost, because registering and checking for sleepers are both sequentially consistent.
class Doorbell {
 public:
  // Returns whether a thread sleeps or is about to sleep. The caller must have stored its change
  // with seq_cst order.
  [[nodiscard]] bool has_sleepers() const noexcept {
    return sleepers_.load(std::memory_order_seq_cst) != 0;
  }
  // Wakes up to `count` sleepers. Makes no system call if there are none.
  void ring(int count = kEverybody) noexcept {
    if (has_sleepers()) ring_always(count);
  }
  void ring_always(int count = kEverybody) noexcept;

  // Sleeps until ring() is called or `timeout` has passed. Returns at once if `ready()` is true.
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

// A lock for critical sections of a few dozen instructions. A thread that finds the lock taken
// pauses, then yields.
class SpinLock {
 public:
  void lock() noexcept;
  void unlock() noexcept { taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> taken_{false};
};

}  // namespace hccl
