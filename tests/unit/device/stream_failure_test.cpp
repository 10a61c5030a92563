// SPDX-License-Identifier: Apache-2.0
// Tests the fate of work behind failed work, on its stream and on those that wait for it.
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
};

// Two streams that wait for each other again and again: what failed once is told once.
TEST_F(FailedWork, AFailureComesOverToAWaitingStreamOnce) {
  const auto first = device_.create_stream();
  const auto second = device_.create_stream();
  for (const Outcome outcome : {Outcome::success, Outcome::collective_failed, Outcome::success,
                                Outcome::collective_failed, Outcome::success, Outcome::success}) {
    second->enqueue([outcome] { return outcome; });
    first->follow(second->capture());
    EXPECT_EQ(first->synchronize(), outcome);
    second->follow(first->capture());
  }
  EXPECT_NE(second->synchronize(), Outcome::success);
  first->follow(second->capture());
  EXPECT_EQ(first->synchronize(), Outcome::success);
  EXPECT_EQ(second->synchronize(), Outcome::success);
}

// An event stands for the work before it, even where the program knows how that ended.
TEST_F(FailedWork, AnEventOfFailedWorkFailsWhatWaitsForItLater) {
  const auto first = device_.create_stream();
  const auto second = device_.create_stream();
  first->enqueue([] { return Outcome::failed; });
  const Capture failed = first->capture();
  EXPECT_EQ(first->synchronize(), Outcome::failed);
  const Capture known = first->capture();
  second->follow(known);
  EXPECT_EQ(second->synchronize(), Outcome::success);
  second->follow(failed);
  EXPECT_EQ(second->synchronize(), Outcome::failed);
  EXPECT_EQ(second->synchronize(), Outcome::success);
}

// A stream's work that fails with a text.
void fail_with(Stream& stream, const char* text) {
  stream.enqueue([text] {
    explain_failure(hcclOutOfMemory, text);
    return Outcome::failed;
  });
}

// Work that counts how often it runs.
void count_on(Stream& stream, int& runs) {
  stream.enqueue(succeeding([&runs] { ++runs; }));
}

TEST_F(FailedWork, AFailedCollectiveHidesNoFailedCopy) {
  const auto first = device_.create_stream();
  const auto second = device_.create_stream();
  int runs = 0;
  first->enqueue([] { return Outcome::collective_failed; });
  fail_with(*first, "no luck");
  second->follow(first->capture());
  count_on(*second, runs);
  std::string reason;
  EXPECT_EQ(second->synchronize(&reason), Outcome::failed);
  EXPECT_EQ(reason, "no luck");
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(first->synchronize(), Outcome::failed);
  EXPECT_EQ(first->synchronize(), Outcome::success);
  EXPECT_EQ(device_.synchronize(), Outcome::success);
}

// The copy between the events was skipped; who waits for the second one would miss its data.
TEST_F(FailedWork, WorkThatWasSkippedFailsWhatWaitsForIt) {
  const auto first = device_.create_stream();
  const auto second = device_.create_stream();
  int skipped = 0;
  int runs = 0;
  fail_with(*first, "no luck");
  const Capture before = first->capture();
  count_on(*first, skipped);
  const Capture behind = first->capture();
  first->run_until(first->pushed());
  second->follow(before);
  EXPECT_EQ(second->synchronize(), Outcome::failed);
  second->follow(behind);
  count_on(*second, runs);
  EXPECT_EQ(second->synchronize(), Outcome::failed);
  EXPECT_EQ(skipped, 0);
  EXPECT_EQ(runs, 0);
}

// Uploads on one stream, work on another, and only the latter is synchronised: one bad upload costs
// one round.
TEST_F(FailedWork, AReportOnTheWaitingStreamEndsTheFailureOnBoth) {
  const auto uploads = device_.create_stream();
  const auto work = device_.create_stream();
  int runs = 0;
  fail_with(*uploads, "no luck");
  for (const Outcome expected : {Outcome::failed, Outcome::success, Outcome::success}) {
    count_on(*uploads, runs);
    work->follow(uploads->capture());
    count_on(*work, runs);
    EXPECT_EQ(work->synchronize(), expected);
  }
  EXPECT_EQ(runs, 4);
}

TEST_F(FailedWork, StreamsThatWaitForEachOtherRecover) {
  const auto first = device_.create_stream();
  const auto second = device_.create_stream();
  int runs = 0;
  fail_with(*first, "no luck");
  for (const Outcome expected : {Outcome::failed, Outcome::success, Outcome::success}) {
    second->follow(first->capture());
    count_on(*second, runs);
    first->follow(second->capture());
    count_on(*first, runs);
    EXPECT_EQ(first->synchronize(), expected);
  }
  EXPECT_EQ(runs, 4);
}

TEST_F(FailedWork, AnEventBetweenTwoFailuresHasNotFailed) {
  const auto first = device_.create_stream();
  const auto second = device_.create_stream();
  int runs = 0;
  fail_with(*first, "no luck");
  EXPECT_EQ(first->synchronize(), Outcome::failed);
  Event event(false);
  event.record(*first);
  fail_with(*first, "no luck");
  EXPECT_EQ(event.synchronize(), Outcome::success);
  second->follow(event.capture());
  count_on(*second, runs);
  EXPECT_EQ(second->synchronize(), Outcome::success);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(first->synchronize(), Outcome::failed);
}

// Two failures of different streams; the report of one leaves the other.
TEST_F(FailedWork, AStreamMayBeHeldByTwoFailures) {
  const auto first = device_.create_stream();
  const auto second = device_.create_stream();
  const auto third = device_.create_stream();
  int runs = 0;
  fail_with(*first, "first");
  fail_with(*second, "second");
  third->follow(first->capture());
  third->follow(second->capture());
  third->run_until(third->pushed());
  EXPECT_EQ(first->synchronize(), Outcome::failed);
  count_on(*third, runs);
  third->run_until(third->pushed());
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(third->progress()->failure().text, "second");
  EXPECT_EQ(second->synchronize(), Outcome::failed);
  count_on(*third, runs);
  third->run_until(third->pushed());
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(third->synchronize(), Outcome::failed);
}

TEST_F(FailedWork, WhatStandsBehindFailedWorkFailsUntilTheProgramKnows) {
  const auto stream = device_.create_stream();
  int runs = 0;
  const auto work = [&] { stream->enqueue(succeeding([&] { ++runs; })); };
  work();
  fail_with(*stream, "no luck");
  work();
  work();
  stream->run_until(stream->pushed());
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(stream->progress()->failure().text, "no luck");
  EXPECT_EQ(stream->progress()->failure().code, hcclOutOfMemory);
  Outcome outcome{};
  ASSERT_TRUE(stream->query(&outcome));  // which does not end it
  EXPECT_EQ(outcome, Outcome::failed);
  work();
  EXPECT_EQ(stream->synchronize(), Outcome::failed);
  EXPECT_EQ(runs, 1);
  work();
  EXPECT_EQ(stream->synchronize(), Outcome::success);
  EXPECT_EQ(runs, 2);
}

TEST_F(FailedWork, WhatWasQueuedBeforeTheProgramKnewFailsLater) {
  const auto stream = device_.create_stream();
  std::atomic<bool> go{false};
  bool ran = false;
  fail_with(*stream, "no luck");
  Event event(false);
  event.record(*stream);
  stream->enqueue(Ordering{[&] {
    while (!go) std::this_thread::yield();
    return Outcome::success;
  }});
  stream->enqueue(succeeding([&] { ran = true; }));
  EXPECT_EQ(event.synchronize(), Outcome::failed);
  go = true;
  EXPECT_EQ(stream->synchronize(), Outcome::failed);
  EXPECT_FALSE(ran);
  EXPECT_EQ(stream->synchronize(), Outcome::success);
}

TEST_F(FailedWork, AFailedCollectiveDoesNotStopWhatStandsBehindIt) {
  const auto stream = device_.create_stream();
  bool ran = false;
  stream->enqueue([] { return Outcome::collective_failed; });
  stream->enqueue(succeeding([&] { ran = true; }));
  EXPECT_EQ(stream->synchronize(), Outcome::collective_failed);
  EXPECT_TRUE(ran);
}

// The wait was queued while the program did not know, and runs when it does.
TEST_F(FailedWork, FailedWorkFailsWhatWaitsForItsEvent) {
  const auto first = device_.create_stream();
  const auto second = device_.create_stream();
  std::atomic<bool> go{false};
  bool ran = false;
  fail_with(*first, "no luck");
  second->enqueue(succeeding([&] {
    while (!go) std::this_thread::yield();
  }));
  second->follow(first->capture());
  second->enqueue(succeeding([&] { ran = true; }));
  EXPECT_EQ(first->synchronize(), Outcome::failed);
  go = true;
  EXPECT_EQ(second->synchronize(), Outcome::failed);
  EXPECT_FALSE(ran);
  EXPECT_EQ(second->progress()->failure().text, "no luck");
  EXPECT_EQ(second->synchronize(), Outcome::success);
}

// Else what is queued when the program knows would overtake the other stream.
TEST_F(FailedWork, WaitsAndTimesAreKeptBehindFailedWork) {
  const auto first = device_.create_stream();
  const auto second = device_.create_stream();
  int value = 0;
  first->enqueue(succeeding([&] {
    std::this_thread::sleep_for(5ms);
    value = 1;
  }));
  fail_with(*second, "no luck");
  second->follow(first->capture());
  Event event(true);
  event.record(*second);
  EXPECT_EQ(second->synchronize(), Outcome::failed);
  EXPECT_EQ(value, 1);
  EXPECT_GT(event.time(), 0u);
}

TEST_F(FailedWork, AFailureIsReportedOnceAndToWhomItConcerns) {
  const auto stream = device_.create_stream();
  const auto work = [&](Outcome outcome) { stream->enqueue([outcome] { return outcome; }); };
  work(Outcome::success);
  Event before(false), after(false);
  before.record(*stream);
  work(Outcome::collective_failed);
  after.record(*stream);
  EXPECT_EQ(before.synchronize(), Outcome::success);
  Outcome outcome{};
  stream->run_until(stream->pushed());
  ASSERT_TRUE(stream->query(&outcome));
  EXPECT_EQ(outcome, Outcome::collective_failed);
  ASSERT_TRUE(after.query(&outcome));
  EXPECT_EQ(outcome, Outcome::collective_failed);
  EXPECT_EQ(stream->synchronize(), Outcome::collective_failed);
  EXPECT_EQ(stream->synchronize(), Outcome::success);
  work(Outcome::success);
  EXPECT_EQ(stream->synchronize(), Outcome::success);
}

}  // namespace
}  // namespace hccl::device
