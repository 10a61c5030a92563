// SPDX-License-Identifier: Apache-2.0
// Tests ranges of a stream's work: failures, reports of failures, and callbacks after the work.
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

// Queues work that fails with `outcome` and `text`.
void fail_on(Stream& stream, Outcome outcome, const std::string& text) {
  stream.enqueue([outcome, text = std::string(text)] {
    explain_failure(hcclSocketError, text);
    return outcome;
  });
}

void succeed_on(Stream& stream) {
  stream.enqueue([] { return Outcome::success; });
}

// Blocks a stream until open() is called.
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

// Records callbacks in the order in which they are made.
class Callbacks {
 public:
  // The argument of one callback.
  struct Ticket {
    Callbacks* owner;
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
    const std::lock_guard lock(ticket->owner->mutex_);
    ticket->owner->lines_.push_back(std::to_string(ticket->number) + ' ' +
                                    std::to_string(static_cast<int>(result)) + ' ' + message);
  }
  std::vector<std::string> lines() {
    const std::lock_guard lock(mutex_);
    return lines_;
  }
  // Blocks until `count` callbacks have been made, and returns their lines.
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
  void notify(Stream& stream, std::uint64_t after, std::uint64_t up_to, Callbacks::Ticket* ticket) {
    Notifier::instance().add(stream, {after, up_to, Callbacks::call, ticket});
  }
  static std::string text_in(const Stream& stream, std::uint64_t after, std::uint64_t up_to) {
    const auto failure = stream.progress()->failure_in(after, up_to);
    return failure ? failure->text : "";
  }

  Device device_{0, 0, FileDescriptor{}, 16 << 20};
  const std::shared_ptr<Stream> stream_ = device_.create_stream();
  Callbacks callbacks_;
};

TEST_F(Ranges, FailOnlyForTheirOwnReason) {
  succeed_on(*stream_);                                              // position 1
  fail_on(*stream_, Outcome::collective_failed, "the first call");   // position 2
  succeed_on(*stream_);                                              // position 3
  fail_on(*stream_, Outcome::collective_failed, "the second call");  // position 4
  succeed_on(*stream_);                                              // position 5
  stream_->run_until(5);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(text_in(*stream_, 0, 1), "");
    EXPECT_EQ(text_in(*stream_, 1, 2), "the first call");
    EXPECT_EQ(text_in(*stream_, 2, 3), "");
    EXPECT_EQ(text_in(*stream_, 2, 5), "the second call");
    EXPECT_EQ(text_in(*stream_, 4, 5), "");
    EXPECT_EQ(text_in(*stream_, 5, 5), "");
    stream_->progress()->set_reported(5, 5);  // reported failures must still be found
  }
}

TEST_F(Ranges, ReportOnlyTheirOwnFailures) {
  fail_on(*stream_, Outcome::collective_failed, "the first call");
  fail_on(*stream_, Outcome::collective_failed, "the second call");
  stream_->run_until(2);
  stream_->progress()->report(1, 2, 2);
  std::string reason;
  EXPECT_EQ(stream_->synchronize(&reason), Outcome::collective_failed);
  EXPECT_EQ(reason, "the first call");
  EXPECT_EQ(stream_->synchronize(), Outcome::success);
}

TEST_F(Ranges, AreNotReportedAgainBySynchronising) {
  fail_on(*stream_, Outcome::collective_failed, "a call");
  succeed_on(*stream_);
  stream_->run_until(2);
  stream_->progress()->report(0, 1, 2);
  EXPECT_EQ(stream_->synchronize(), Outcome::success);
}

TEST_F(Ranges, ReportingAFailureEndsItsEffect) {
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

TEST_F(Ranges, CanBeAwaitedWithTimeLimit) {
  Gate gate;
  gate.hold(*stream_);
  EXPECT_FALSE(stream_->wait_until(1, Deadline::after(20ms)));
  gate.open();
  EXPECT_TRUE(stream_->wait_until(1, Deadline::never()));
  EXPECT_TRUE(stream_->wait_until(1, Deadline::after(1ns)));
}

// Callbacks must be made although no thread waits for the stream.
TEST_F(Ranges, NotifyWithoutWaiters) {
  for (int round = 0; round < 20; ++round) {
    succeed_on(*stream_);
    const std::uint64_t position = stream_->pushed();
    notify(*stream_, position - 1, position, callbacks_.ticket(round));
    EXPECT_EQ(callbacks_.wait_for(static_cast<std::size_t>(round) + 1).back(),
              std::to_string(round) + " 0 ");
    std::this_thread::sleep_for(
        round % 2 == 0 ? 0ms : 15ms);  // after 0 ms the worker naps; after 15 ms it sleeps
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
    notify(*stream_, up_to - 1, up_to, callbacks_.ticket(position));
  }
  EXPECT_EQ(callbacks_.lines(), Lines{});
  gate.open();
  const std::string code = std::to_string(static_cast<int>(hcclSocketError));
  EXPECT_EQ(callbacks_.wait_for(4), (Lines{"1 0 ", "2 " + code + " the first call", "3 0 ",
                                           "4 " + code + " the last call"}));
  EXPECT_EQ(stream_->synchronize(), Outcome::success)
      << "the callbacks have reported both failures";
}

TEST_F(Ranges, NotifyInOrderOfPositions) {
  Gate gate;
  gate.hold(*stream_);
  for (int i = 0; i < 3; ++i) succeed_on(*stream_);
  for (const int position : {3, 1, 4, 2, 4, 1})
    notify(*stream_, 0, static_cast<std::uint64_t>(position), callbacks_.ticket(position));
  gate.open();
  EXPECT_EQ(callbacks_.wait_for(6), (Lines{"1 0 ", "1 0 ", "2 0 ", "3 0 ", "4 0 ", "4 0 "}));
}

// A callback for a blocked stream must not delay the callbacks for other streams.
TEST_F(Ranges, NotifyForEachStreamIndependently) {
  const auto free = device_.create_stream();
  Gate gate;
  gate.hold(*stream_);
  notify(*stream_, 0, 1, callbacks_.ticket(1));
  for (int round = 0; round < 100; ++round) {
    succeed_on(*free);
    notify(*free, 0, free->pushed(), callbacks_.ticket(2));
  }
  EXPECT_EQ(callbacks_.wait_for(100), Lines(100, "2 0 "));
  gate.open();
  EXPECT_EQ(callbacks_.wait_for(101).back(), "1 0 ");
}

// Queues work and waits for it, by position or by synchronising the stream.
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

// Callbacks must be made even if a thread that waits for the same stream runs the work.
TEST_F(Ranges, NotifyWhileOtherThreadsSynchronise) {
  constexpr int kRounds = 2'000;
  std::thread first([&] { queue_and_wait(*stream_, kRounds); });
  std::thread second([&] { queue_and_wait(*stream_, kRounds); });
  for (int round = 0; round < kRounds; ++round) {
    succeed_on(*stream_);
    notify(*stream_, 0, stream_->pushed(), callbacks_.ticket(round));
  }
  EXPECT_EQ(callbacks_.wait_for(kRounds).size(), static_cast<std::size_t>(kRounds));
  first.join();
  second.join();
}

TEST_F(Ranges, NotifyFromCallbacks) {
  succeed_on(*stream_);
  Callbacks::Ticket* const second = callbacks_.ticket(2);
  notify(*stream_, 0, 1, callbacks_.ticket(1, [&] {
    succeed_on(*stream_);
    EXPECT_EQ(stream_->synchronize(), Outcome::success);
    notify(*stream_, 1, 2, second);
    Notifier::instance().stop();  // must do nothing in the notifier's thread
  }));
  EXPECT_EQ(callbacks_.wait_for(2), (Lines{"1 0 ", "2 0 "}));
}

TEST_F(Ranges, NotifyAfterStreamIsDestroyed) {
  auto stream = device_.create_stream();
  Gate gate;
  gate.hold(*stream);
  fail_on(*stream, Outcome::collective_failed, "a call");
  notify(*stream, 0, 2, callbacks_.ticket(1));
  gate.open();
  device_.destroy_stream(stream);
  stream.reset();
  EXPECT_EQ(callbacks_.wait_for(1),
            Lines{"1 " + std::to_string(static_cast<int>(hcclSocketError)) + " a call"});
}

TEST_F(Ranges, NotifyBeforeThreadStopsAndAfterRestart) {
  Gate gate;
  for (int round = 0; round < 50; ++round) {
    succeed_on(*stream_);
    notify(*stream_, 0, stream_->pushed(), callbacks_.ticket(round));
    EXPECT_EQ(stream_->synchronize(), Outcome::success);
    Notifier::instance().stop();
    ASSERT_EQ(callbacks_.lines().size(), static_cast<std::size_t>(round) + 1);
  }
}

// A forked child has no notifier thread. The child must still be able to exit, and the parent must
// still get its callbacks.
TEST_F(Ranges, NotifyParentOfForkedChild) {
  Gate gate;
  gate.hold(*stream_);
  notify(*stream_, 0, 1, callbacks_.ticket(1));
  install_fork_guard();
  EXPECT_EQ(test::status_in_child([&]() -> int { std::exit(callbacks_.lines().empty() ? 0 : 1); }),
            0);
  gate.open();
  EXPECT_EQ(callbacks_.wait_for(1), Lines{"1 0 "});
}

}  // namespace
}  // namespace hccl::device
