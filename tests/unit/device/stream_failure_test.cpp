// SPDX-License-Identifier: Apache-2.0
// Tests how failed work affects later work on the same stream, and streams that wait for the failed
// work.
#include "device/device.h"
#include "device/event.h"
#include "device/stream.h"
#include "samples.h"

#include <atomic>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

namespace hccl::device {
namespace {

using namespace std::chrono_literals;

class FailedWork : public testing::Test {
 protected:
  Device device_{0, 0, FileDescriptor{}, 16 << 20};
  const std::shared_ptr<Stream> first_ = device_.create_stream();
  const std::shared_ptr<Stream> second_ = device_.create_stream();
};

// Two streams wait for each other repeatedly. Each failure must reach the waiting stream once.
TEST_F(FailedWork, FailureReachesWaitingStreamOnce) {
  for (const Outcome outcome : {Outcome::success, Outcome::collective_failed, Outcome::success,
                                Outcome::collective_failed, Outcome::success, Outcome::success}) {
    second_->enqueue([outcome] { return outcome; });
    first_->follow(second_->capture());
    EXPECT_EQ(first_->synchronize(), outcome);
    second_->follow(first_->capture());
  }
  EXPECT_NE(second_->synchronize(), Outcome::success);
  first_->follow(second_->capture());
  EXPECT_EQ(first_->synchronize(), Outcome::success);
  EXPECT_EQ(second_->synchronize(), Outcome::success);
}

// A capture that was made before a failure was reported must still fail streams that follow() it
// after the report. A capture that was made after the report must not.
TEST_F(FailedWork, EventOfFailedWorkFailsLaterWaits) {
  first_->enqueue([] { return Outcome::failed; });
  const Capture failed = first_->capture();
  EXPECT_EQ(first_->synchronize(), Outcome::failed);
  const Capture known = first_->capture();
  second_->follow(known);
  EXPECT_EQ(second_->synchronize(), Outcome::success);
  second_->follow(failed);
  EXPECT_EQ(second_->synchronize(), Outcome::failed);
  EXPECT_EQ(second_->synchronize(), Outcome::success);
}

// Queues work that fails with a text.
void fail_with(Stream& stream, const char* text) {
  stream.enqueue([text] {
    explain_failure(hcclOutOfMemory, text);
    return Outcome::failed;
  });
}

// Queues work that counts its runs.
void count_on(Stream& stream, int& runs) {
  stream.enqueue(succeeding([&runs] { ++runs; }));
}

TEST_F(FailedWork, FailedCollectiveHidesNoFailedCopy) {
  int runs = 0;
  first_->enqueue([] { return Outcome::collective_failed; });
  fail_with(*first_, "no luck");
  second_->follow(first_->capture());
  count_on(*second_, runs);
  std::string reason;
  EXPECT_EQ(second_->synchronize(&reason), Outcome::failed);
  EXPECT_EQ(reason, "no luck");
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(first_->synchronize(), Outcome::failed);
  EXPECT_EQ(first_->synchronize(), Outcome::success);
  EXPECT_EQ(device_.synchronize(), Outcome::success);
}

// The work between the two captures is skipped. A stream that follows the second capture lacks the
// results of that work, so it must fail.
TEST_F(FailedWork, SkippedWorkFailsItsWaiters) {
  int skipped = 0;
  int runs = 0;
  fail_with(*first_, "no luck");
  const Capture before = first_->capture();
  count_on(*first_, skipped);
  const Capture behind = first_->capture();
  first_->run_until(first_->pushed());
  second_->follow(before);
  EXPECT_EQ(second_->synchronize(), Outcome::failed);
  second_->follow(behind);
  count_on(*second_, runs);
  EXPECT_EQ(second_->synchronize(), Outcome::failed);
  EXPECT_EQ(skipped, 0);
  EXPECT_EQ(runs, 0);
}

// In each round, the program uploads on one stream, works on a second stream, and synchronises only
// the second one. A failed upload must fail only one round.
TEST_F(FailedWork, ReportOnWaitingStreamEndsFailureOnBoth) {
  int runs = 0;
  fail_with(*first_, "no luck");
  for (const Outcome expected : {Outcome::failed, Outcome::success, Outcome::success}) {
    count_on(*first_, runs);
    second_->follow(first_->capture());
    count_on(*second_, runs);
    EXPECT_EQ(second_->synchronize(), expected);
  }
  EXPECT_EQ(runs, 4);
}

TEST_F(FailedWork, StreamsThatWaitForEachOtherRecover) {
  int runs = 0;
  fail_with(*first_, "no luck");
  for (const Outcome expected : {Outcome::failed, Outcome::success, Outcome::success}) {
    second_->follow(first_->capture());
    count_on(*second_, runs);
    first_->follow(second_->capture());
    count_on(*first_, runs);
    EXPECT_EQ(first_->synchronize(), expected);
  }
  EXPECT_EQ(runs, 4);
}

TEST_F(FailedWork, EventBetweenTwoFailuresSucceeds) {
  int runs = 0;
  fail_with(*first_, "no luck");
  EXPECT_EQ(first_->synchronize(), Outcome::failed);
  Event event(false);
  event.record(*first_);
  fail_with(*first_, "no luck");
  EXPECT_EQ(event.synchronize(), Outcome::success);
  second_->follow(event.capture());
  count_on(*second_, runs);
  EXPECT_EQ(second_->synchronize(), Outcome::success);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(first_->synchronize(), Outcome::failed);
}

// If failures of two streams stop a third stream, the report of one failure must not let the third
// stream continue.
TEST_F(FailedWork, TwoFailuresMayHoldOneStream) {
  const auto third = device_.create_stream();
  int runs = 0;
  fail_with(*first_, "first");
  fail_with(*second_, "second");
  third->follow(first_->capture());
  third->follow(second_->capture());
  third->run_until(third->pushed());
  EXPECT_EQ(first_->synchronize(), Outcome::failed);
  count_on(*third, runs);
  third->run_until(third->pushed());
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(third->progress()->failure().text, "second");
  EXPECT_EQ(second_->synchronize(), Outcome::failed);
  count_on(*third, runs);
  third->run_until(third->pushed());
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(third->synchronize(), Outcome::failed);
}

TEST_F(FailedWork, LaterWorkFailsUntilFailureIsReported) {
  int runs = 0;
  const auto work = [&] { first_->enqueue(succeeding([&] { ++runs; })); };
  work();
  fail_with(*first_, "no luck");
  work();
  work();
  first_->run_until(first_->pushed());
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(first_->progress()->failure().text, "no luck");
  EXPECT_EQ(first_->progress()->failure().code, hcclOutOfMemory);
  Outcome outcome{};
  ASSERT_TRUE(first_->query(&outcome));  // a query must not count as a report
  EXPECT_EQ(outcome, Outcome::failed);
  work();
  EXPECT_EQ(first_->synchronize(), Outcome::failed);
  EXPECT_EQ(runs, 1);
  work();
  EXPECT_EQ(first_->synchronize(), Outcome::success);
  EXPECT_EQ(runs, 2);
}

TEST_F(FailedWork, WorkQueuedBeforeReportFails) {
  std::atomic<bool> go{false};
  bool ran = false;
  fail_with(*first_, "no luck");
  Event event(false);
  event.record(*first_);
  first_->enqueue(Ordering{[&] {
    while (!go) std::this_thread::yield();
    return Outcome::success;
  }});
  first_->enqueue(succeeding([&] { ran = true; }));
  EXPECT_EQ(event.synchronize(), Outcome::failed);
  go = true;
  EXPECT_EQ(first_->synchronize(), Outcome::failed);
  EXPECT_FALSE(ran);
  EXPECT_EQ(first_->synchronize(), Outcome::success);
}

TEST_F(FailedWork, FailedCollectiveDoesNotStopLaterWork) {
  bool ran = false;
  first_->enqueue([] { return Outcome::collective_failed; });
  first_->enqueue(succeeding([&] { ran = true; }));
  EXPECT_EQ(first_->synchronize(), Outcome::collective_failed);
  EXPECT_TRUE(ran);
}

// The wait is queued before the failure is reported to the program, and runs after the report. The
// wait must still fail.
TEST_F(FailedWork, FailsWaitersForItsEvent) {
  std::atomic<bool> go{false};
  bool ran = false;
  fail_with(*first_, "no luck");
  second_->enqueue(succeeding([&] {
    while (!go) std::this_thread::yield();
  }));
  second_->follow(first_->capture());
  second_->enqueue(succeeding([&] { ran = true; }));
  EXPECT_EQ(first_->synchronize(), Outcome::failed);
  go = true;
  EXPECT_EQ(second_->synchronize(), Outcome::failed);
  EXPECT_FALSE(ran);
  EXPECT_EQ(second_->progress()->failure().text, "no luck");
  EXPECT_EQ(second_->synchronize(), Outcome::success);
}

// Waits and event times must stay in order on a failed stream. Otherwise, work that is queued after
// the report would overtake the other stream's work.
TEST_F(FailedWork, WaitsAndEventTimesStayInOrderBehindIt) {
  int value = 0;
  first_->enqueue(succeeding([&] {
    std::this_thread::sleep_for(5ms);
    value = 1;
  }));
  fail_with(*second_, "no luck");
  second_->follow(first_->capture());
  Event event(true);
  event.record(*second_);
  EXPECT_EQ(second_->synchronize(), Outcome::failed);
  EXPECT_EQ(value, 1);
  EXPECT_GT(event.time(), 0u);
}

TEST_F(FailedWork, FailureIsReportedOnceAndOnlyToLaterEvents) {
  const auto work = [&](Outcome outcome) { first_->enqueue([outcome] { return outcome; }); };
  work(Outcome::success);
  Event before(false), after(false);
  before.record(*first_);
  work(Outcome::collective_failed);
  after.record(*first_);
  EXPECT_EQ(before.synchronize(), Outcome::success);
  Outcome outcome{};
  first_->run_until(first_->pushed());
  ASSERT_TRUE(first_->query(&outcome));
  EXPECT_EQ(outcome, Outcome::collective_failed);
  ASSERT_TRUE(after.query(&outcome));
  EXPECT_EQ(outcome, Outcome::collective_failed);
  EXPECT_EQ(first_->synchronize(), Outcome::collective_failed);
  EXPECT_EQ(first_->synchronize(), Outcome::success);
  work(Outcome::success);
  EXPECT_EQ(first_->synchronize(), Outcome::success);
}

}  // namespace
}  // namespace hccl::device
