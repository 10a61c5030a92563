// SPDX-License-Identifier: Apache-2.0
// Tests which sleepers a doorbell wakes.
#include "base/waiter.h"

#include <atomic>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

namespace hccl {
namespace {

using namespace std::chrono_literals;

// A thread that sleeps on a doorbell until it is woken for the first time.
class Sleeper {
 public:
  Sleeper(Doorbell& bell, std::uint32_t events)
      : thread_([this, &bell, events] {
          const auto begins_to_sleep = [this] {
            sleeps_ = true;
            return false;
          };
          bell.sleep(10s, begins_to_sleep, events);
          is_awake_ = true;
        }) {
    while (!sleeps_) std::this_thread::yield();
    std::this_thread::sleep_for(20ms);  // from the check to the system call
  }
  ~Sleeper() { thread_.join(); }

  // Returns whether the thread is awake, or wakes up within 5 s.
  [[nodiscard]] bool wakes_up() const {
    const auto end = std::chrono::steady_clock::now() + 5s;
    while (!is_awake_ && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    return is_awake_;
  }
  [[nodiscard]] bool stays_asleep() const {
    std::this_thread::sleep_for(50ms);
    return !is_awake_;
  }

 private:
  std::atomic<bool> sleeps_{false};
  std::atomic<bool> is_awake_{false};
  std::thread thread_;
};

TEST(Doorbell, RingForAnEventWakesOnlySleepersThatWaitForIt) {
  Doorbell bell;
  Sleeper first(bell, 1);
  Sleeper second(bell, 2);
  Sleeper any(bell, Doorbell::kAnyEvents);
  bell.ring_for(1);
  EXPECT_TRUE(first.wakes_up());
  EXPECT_TRUE(any.wakes_up());
  EXPECT_TRUE(second.stays_asleep());
  bell.ring_for(3);
  EXPECT_TRUE(second.wakes_up());
}

TEST(Doorbell, RingWakesEverybody) {
  Doorbell bell;
  Sleeper first(bell, 1);
  Sleeper any(bell, Doorbell::kAnyEvents);
  bell.ring();
  EXPECT_TRUE(first.wakes_up());
  EXPECT_TRUE(any.wakes_up());
}

TEST(Doorbell, SleepEndsAtTheTimeout) {
  Doorbell bell;
  const auto start = std::chrono::steady_clock::now();
  bell.sleep(
      30ms, [] { return false; }, 1);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 29ms);
  EXPECT_FALSE(bell.has_sleepers());
}

TEST(Doorbell, DoesNotSleepIfTheChangeHasHappened) {
  Doorbell bell;
  bell.sleep(10s, [] { return true; });
  bell.ring_for(1);  // nobody sleeps
  EXPECT_FALSE(bell.has_sleepers());
}

}  // namespace
}  // namespace hccl
