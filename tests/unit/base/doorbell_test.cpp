// SPDX-License-Identifier: Apache-2.0
// Tests which sleepers a doorbell wakes.
#include "base/waiter.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

namespace hccl {
namespace {

using namespace std::chrono_literals;

// Returns the state letter of a thread of this process: 'S' while it sleeps.
char state_of(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string text;
  std::getline(file, text);
  return text.at(text.rfind(')') + 2);
}

// A thread that sleeps on a doorbell until it is woken for the first time.
class Sleeper {
 public:
  Sleeper(Doorbell& bell, std::uint32_t events)
      : thread_([this, &bell, events] {
          const auto begins_to_sleep = [this] {
            number_ = gettid();
            return false;
          };
          bell.sleep(60s, begins_to_sleep, events);
          is_awake_ = true;
        }) {
    while (number_ == 0 || !is_asleep()) std::this_thread::yield();
  }
  ~Sleeper() { thread_.join(); }

  // Returns whether the thread is awake, or wakes up within 10 s.
  [[nodiscard]] bool wakes_up() const {
    const auto end = std::chrono::steady_clock::now() + 10s;
    while (!is_awake_ && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    return is_awake_;
  }
  [[nodiscard]] bool is_asleep() const { return !is_awake_ && state_of(number_) == 'S'; }

 private:
  std::atomic<pid_t> number_{0};
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
  EXPECT_TRUE(second.is_asleep());
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
  bell.ring_for(1);  // no thread sleeps
  EXPECT_FALSE(bell.has_sleepers());
}

}  // namespace
}  // namespace hccl
