// SPDX-License-Identifier: Apache-2.0
// Tests ranges of a stream's work: how they failed, whether that has been reported, and the
// callbacks when they have run.
#include "device/notifier.h"

#include "base/process.h"
#include "children.h"
#include "device/device.h"
#include "device/stream.h"
#include "samples.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace hccl::device {
namespace {

using namespace std::chrono_literals;

// Queues work that fails with `text`.
void fail_on(Stream& stream, Outcome outcome, const std::string& text) {
  stream.enqueue([outcome, text = std::string(text)] {
    explain_failure(hcclSocketError, text);
    return outcome;
  });
}

void succeed_on(Stream& stream) {
  stream.enqueue([] { return Outcome::success; });
}

// Holds a stream until the gate opens.
class Gate {
 public:
  void hold(Stream& stream) {
    stream.enqueue(succeeding([this] {
      while (!open_) std::this_thread::sleep_for(100us);
    }));
  }
  void open() { open_ = true; }

 private:
  std::atomic<bool> open_{false};
};

// Records the arguments of callbacks in order.
class Told {
 public:
  // The argument of one callback.
  struct Ticket {
    Told* told;
    int number;
    std::function<void()> action;
  };

  Ticket* ticket(int number, std::function<void()> action = {}) {
    tickets_.push_back(std::make_unique<Ticket>(Ticket{this, number, std::move(action)}));
    return tickets_.back().get();
  }
  static void call(hcclResult_t result, const char* message, void* argument) {
    auto* const ticket = static_cast<Ticket*>(argument);
    if (ticket->action) ticket->action();
    const std::lock_guard lock(ticket->told->mutex_);
    ticket->told->lines_.push_back(std::to_string(ticket->number) + ' ' +
                                   std::to_string(static_cast<int>(result)) + ' ' + message);
  }
  std::vector<std::string> lines() {
    const std::lock_guard lock(mutex_);
    return lines_;
  }
  // Blocks until `count` callbacks have been made, and returns them.
  std::vector<std::string> wait_for(std::size_t count) {
    while (lines().size() < count) std::this_thread::sleep_for(100us);
    return lines();
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
  std::vector<std::unique_ptr<Ticket>> tickets_;
};

using Lines = std::vector<std::string>;

class Ranges : public testing::Test {
 protected:
  void notify(Stream& stream, std::uint64_t after, std::uint64_t up_to, Told::Ticket* ticket) {
    Notifier::instance().add(stream, {after, up_to, Told::call, ticket});
  }
  static std::string text_in(const Stream& stream, std::uint64_t after, std::uint64_t up_to) {
    const auto failure = stream.progress()->failure_in(after, up_to);
    return failure ? failure->text : "";
  }

  Device device_{0, 0, FileDescriptor{}, 16 << 20};
  const std::shared_ptr<Stream> stream_ = device_.create_stream();
  Told told_;
};

TEST_F(Ranges, FailForTheirOwnReasonAlone) {
  succeed_on(*stream_);                                              // 1
  fail_on(*stream_, Outcome::collective_failed, "the first call");   // 2
  succeed_on(*stream_);                                              // 3
  fail_on(*stream_, Outcome::collective_failed, "the second call");  // 4
  succeed_on(*stream_);                                              // 5
  stream_->run_until(5);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(text_in(*stream_, 0, 1), "");
    EXPECT_EQ(text_in(*stream_, 1, 2), "the first call");
    EXPECT_EQ(text_in(*stream_, 2, 3), "");
    EXPECT_EQ(text_in(*stream_, 2, 5), "the second call");
    EXPECT_EQ(text_in(*stream_, 4, 5), "");
    EXPECT_EQ(text_in(*stream_, 5, 5), "");
    stream_->progress()->set_reported(5, 5);  // they have failed, even if that has been reported
  }
}

TEST_F(Ranges, ReportTheirOwnFailuresAlone) {
  fail_on(*stream_, Outcome::collective_failed, "the first call");
  fail_on(*stream_, Outcome::collective_failed, "the second call");
  stream_->run_until(2);
  stream_->progress()->report(1, 2, 2);
  std::string reason;
  EXPECT_EQ(stream_->synchronize(&reason), Outcome::collective_failed);
  EXPECT_EQ(reason, "the first call");
  EXPECT_EQ(stream_->synchronize(), Outcome::success);
}

TEST_F(Ranges, AreNotReportedAgainWhenTheStreamIsSynchronised) {
  fail_on(*stream_, Outcome::collective_failed, "a call");
  succeed_on(*stream_);
  stream_->run_until(2);
  stream_->progress()->report(0, 1, 2);
  EXPECT_EQ(stream_->synchronize(), Outcome::success);
}

TEST_F(Ranges, EndThePoisonOfTheFailureTheyReport) {
  int runs = 0;
  const auto count = [&runs] {
    ++runs;
    return Outcome::success;
  };
  fail_on(*stream_, Outcome::failed, "a copy");
  stream_->enqueue(count);
  stream_->run_until(2);
  EXPECT_EQ(text_in(*stream_, 1, 2), "a copy");
  stream_->progress()->report(1, 2, stream_->pushed());
  stream_->enqueue(count);
  stream_->run_until(3);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(text_in(*stream_, 2, 3), "");
}

TEST_F(Ranges, AreWaitedForWithALimit) {
  Gate gate;
  gate.hold(*stream_);
  EXPECT_FALSE(stream_->wait_until(1, Deadline::after(20ms)));
  gate.open();
  EXPECT_TRUE(stream_->wait_until(1, Deadline::never()));
  EXPECT_TRUE(stream_->wait_until(1, Deadline::after(1ns)));
}

// A callback must come both for work that has run and for work that is yet to run.
TEST_F(Ranges, NotifyThoughNobodyWaits) {
  for (int round = 0; round < 20; ++round) {
    succeed_on(*stream_);
    const std::uint64_t position = stream_->pushed();
    notify(*stream_, position - 1, position, told_.ticket(round));
    EXPECT_EQ(told_.wait_for(static_cast<std::size_t>(round) + 1).back(),
              std::to_string(round) + " 0 ");
    std::this_thread::sleep_for(round % 2 == 0 ? 0ms : 15ms);  // then the worker naps, or sleeps
  }
}

TEST_F(Ranges, NotifyOfTheirOwnFailures) {
  Gate gate;
  gate.hold(*stream_);
  fail_on(*stream_, Outcome::collective_failed, "the first call");
  succeed_on(*stream_);
  fail_on(*stream_, Outcome::collective_failed, "the last call");
  for (const int position : {1, 2, 3, 4}) {
    const auto up_to = static_cast<std::uint64_t>(position);
    notify(*stream_, up_to - 1, up_to, told_.ticket(position));
  }
  EXPECT_EQ(told_.lines(), Lines{});
  gate.open();
  const std::string code = std::to_string(static_cast<int>(hcclSocketError));
  EXPECT_EQ(told_.wait_for(4), (Lines{"1 0 ", "2 " + code + " the first call", "3 0 ",
                                      "4 " + code + " the last call"}));
  EXPECT_EQ(stream_->synchronize(), Outcome::success) << "the program knows";
}

TEST_F(Ranges, NotifyInTheOrderOfPositions) {
  Gate gate;
  gate.hold(*stream_);
  for (int i = 0; i < 3; ++i) succeed_on(*stream_);
  for (const int position : {3, 1, 4, 2, 4, 1})
    notify(*stream_, 0, static_cast<std::uint64_t>(position), told_.ticket(position));
  gate.open();
  EXPECT_EQ(told_.wait_for(6), (Lines{"1 0 ", "1 0 ", "2 0 ", "3 0 ", "4 0 ", "4 0 "}));
}

// A callback that waits for a blocked stream must not delay those of other streams.
TEST_F(Ranges, NotifyOfEachStreamAsItComes) {
  const auto free = device_.create_stream();
  Gate gate;
  gate.hold(*stream_);
  notify(*stream_, 0, 1, told_.ticket(1));
  for (int round = 0; round < 100; ++round) {
    succeed_on(*free);
    notify(*free, 0, free->pushed(), told_.ticket(2));
  }
  EXPECT_EQ(told_.wait_for(100), Lines(100, "2 0 "));
  gate.open();
  EXPECT_EQ(told_.wait_for(101).back(), "1 0 ");
}

// Queues work and waits for it, in one way or the other.
void queue_and_wait(Stream& stream, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    succeed_on(stream);
    if (round % 3 == 0) {
      EXPECT_TRUE(stream.wait_until(stream.pushed(), Deadline::never()));
    } else {
      EXPECT_EQ(stream.synchronize(), Outcome::success);
    }
  }
}

// Callbacks must come even if a thread that waits for the same stream runs its work.
TEST_F(Ranges, NotifyAmongThreadsThatSynchronise) {
  constexpr int kRounds = 2'000;
  std::thread first([&] { queue_and_wait(*stream_, kRounds); });
  std::thread second([&] { queue_and_wait(*stream_, kRounds); });
  for (int round = 0; round < kRounds; ++round) {
    succeed_on(*stream_);
    notify(*stream_, 0, stream_->pushed(), told_.ticket(round));
  }
  EXPECT_EQ(told_.wait_for(kRounds).size(), static_cast<std::size_t>(kRounds));
  first.join();
  second.join();
}

TEST_F(Ranges, NotifyFromWithinCallbacks) {
  succeed_on(*stream_);
  Told::Ticket* const second = told_.ticket(2);
  notify(*stream_, 0, 1, told_.ticket(1, [&] {
    succeed_on(*stream_);
    EXPECT_EQ(stream_->synchronize(), Outcome::success);
    notify(*stream_, 1, 2, second);
    Notifier::instance().stop();  // must do nothing in the notifier's thread
  }));
  EXPECT_EQ(told_.wait_for(2), (Lines{"1 0 ", "2 0 "}));
}

TEST_F(Ranges, NotifyThoughTheStreamIsDestroyed) {
  auto stream = device_.create_stream();
  Gate gate;
  gate.hold(*stream);
  fail_on(*stream, Outcome::collective_failed, "a call");
  notify(*stream, 0, 2, told_.ticket(1));
  gate.open();
  device_.destroy_stream(stream);
  stream.reset();
  EXPECT_EQ(told_.wait_for(1),
            Lines{"1 " + std::to_string(static_cast<int>(hcclSocketError)) + " a call"});
}

TEST_F(Ranges, NotifyBeforeTheThreadStopsAndWithTheNext) {
  Gate gate;
  for (int round = 0; round < 50; ++round) {
    succeed_on(*stream_);
    notify(*stream_, 0, stream_->pushed(), told_.ticket(round));
    EXPECT_EQ(stream_->synchronize(), Outcome::success);
    Notifier::instance().stop();
    ASSERT_EQ(told_.lines().size(), static_cast<std::size_t>(round) + 1);
  }
}

// A child has no notifier thread. It must exit nevertheless, and the parent must get its callbacks.
TEST_F(Ranges, NotifyTheParentOfAForkedChild) {
  Gate gate;
  gate.hold(*stream_);
  notify(*stream_, 0, 1, told_.ticket(1));
  install_fork_guard();
  EXPECT_EQ(test::status_in_child([&]() -> int { std::exit(told_.lines().empty() ? 0 : 1); }), 0);
  gate.open();
  EXPECT_EQ(told_.wait_for(1), Lines{"1 0 "});
}

}  // namespace
}  // namespace hccl::device
