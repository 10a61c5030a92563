// SPDX-License-Identifier: Apache-2.0
// How a thread waits for another thread. The waiting thread first pauses and then yields, each a
// limited number of times (the ladder), and then sleeps on a futex. The ladder is limited, because
// ranks may outnumber cores.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace hccl {

// The number of pauses and of yields before a thread sleeps.
struct WaitLadder {
  std::uint32_t pauses = 0;
  std::uint32_t yields = 0;
  const char* name = "sleeping";  // for the log

  // For threads that have a core each. The pauses before the first yield take about a microsecond.
  // With more pauses, calls were not faster, and took two thirds longer when another program used
  // one of the cores.
  static constexpr WaitLadder spinning() { return {40, 1000, "spinning"}; }
  // For threads that share cores. They yield without pausing first, for about a millisecond.
  static constexpr WaitLadder yielding() { return {0, 1000, "yielding"}; }
  // For threads that share cores with threads of other scheduling groups, as under torchrun, which
  // starts each rank in its own session and therefore in its own group. sched_yield() does not let
  // threads of other groups run: the yielding thread keeps its core for the rest of its time slice,
  // about 3 ms. A sleeping thread does release the core.
  static constexpr WaitLadder sleeping() { return {0, 0, "sleeping"}; }
  // Returns the ladder for threads of this process that wait for each other: yielding(), or
  // sleeping() after share_cores_with_other_groups() has been called.
  [[nodiscard]] static WaitLadder within_process() noexcept;
  // Makes within_process() return sleeping() from now on. Called when a communicator finds that its
  // ranks share cores but not a scheduling group.
  static void share_cores_with_other_groups() noexcept;
};

// How long a thread may wait; callers that have other work limit the wait. unlimited: until the
// wait ends, sleeping if necessary. no_sleep: until the ladder is used up. pauses_only: until the
// ladder's pauses are used up; the same as no_sleep if the ladder has no pauses.
enum class WaitBudget : std::uint8_t { unlimited, no_sleep, pauses_only };

// One wait. poll_again() pauses or yields and returns true. Once the ladder or the budget is used
// up, it returns false, and the caller must sleep or return.
class Waiter {
 public:
  explicit Waiter(WaitLadder ladder) noexcept : ladder_(ladder) {}
  [[nodiscard]] bool poll_again(WaitBudget wait_budget = WaitBudget::unlimited) noexcept;

 private:
  WaitLadder ladder_;
  std::uint32_t step_ = 0;
};

// A futex on which threads sleep; it may be in shared memory. A waker stores the change that
// sleepers await, and then calls ring() or ring_for(). A sleeper registers, then checks for the
// change, and then sleeps. The registration and the check for sleepers are both sequentially
// consistent, so no wake-up is lost.
class Doorbell {
 public:
  // Returns whether a thread is asleep or about to sleep. Call it after storing the change with
  // seq_cst order.
  [[nodiscard]] bool has_sleepers() const noexcept {
    return sleepers_.load(std::memory_order_seq_cst) != 0;
  }
  // Wakes at most `count` sleepers. Makes no system call if there are none.
  void ring(int count = kEverybody) noexcept {
    if (has_sleepers()) ring_always(count);
  }
  void ring_always(int count = kEverybody) noexcept;
  // Wakes the sleepers that wait for at least one of `events` (a set of bits). Makes no system call
  // if there are no sleepers.
  void ring_for(std::uint32_t events) noexcept;

  // Sleeps until ring() is called, ring_for() is called with at least one of `events`, or `timeout`
  // has passed. May wake up early. Does not sleep if `ready()` is true.
  template <class Ready>
  void sleep(std::chrono::nanoseconds timeout, Ready ready,
             std::uint32_t events = kAnyEvents) noexcept {
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    const std::uint32_t seen = word_.load(std::memory_order_seq_cst);
    if (!ready()) wait(seen, timeout, events);
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
  }

  static constexpr int kEverybody = 0x7fffffff;
  static constexpr std::uint32_t kAnyEvents = 0xffffffff;

 private:
  void wait(std::uint32_t seen, std::chrono::nanoseconds timeout, std::uint32_t events) noexcept;

  std::atomic<std::uint32_t> word_{0};
  std::atomic<std::uint32_t> sleepers_{0};
};

// A lock for critical sections of a few dozen instructions. A thread that waits for the lock
// pauses, and then yields.
class SpinLock {
 public:
  void lock() noexcept;
  void unlock() noexcept { taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> taken_{false};
};

}  // namespace hccl
