// SPDX-License-Identifier: Apache-2.0
// Tests streams: the order of their work, the threads that run it, and waiting.
#include "device/stream.h"

#include "base/syn_error.h"
#include "device/device.h"
#include "device/event.h"
#include "samples.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace hccl::device {
namespace {

using namespace std::chrono_literals;

class Streams : public testing::Test {
 protected:
  Device device_{0, 0, FileDescriptor{}, 16 << 20};
  const std::shared_ptr<Stream> stream_ = device_.create_stream();
};

TEST_F(Streams, RunInOrder) {
  std::vector<int> seen;
  for (int number = 0; number < 5'000; ++number) {
    stream_->enqueue(succeeding([&seen, number] { seen.push_back(number); }));
  }
  EXPECT_EQ(stream_->synchronize(), Outcome::success);
  ASSERT_EQ(seen.size(), 5'000u);
  for (int number = 0; number < 5'000; ++number)
    ASSERT_EQ(seen[static_cast<std::size_t>(number)], number);
}

TEST_F(Streams, RunWithoutWaiters) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<bool> ran{false};
    stream_->enqueue(succeeding([&] { ran.store(true); }));
    while (!ran) std::this_thread::yield();
    std::this_thread::sleep_for(
        round % 2 == 0 ? 0ms : 15ms);  // after 0 ms the worker naps; after 15 ms it sleeps
  }
}

// The worker naps longer if the program has always waited for its work. If the program then queues
// work without waiting, that work must still start.
TEST_F(Streams, RunWithoutWaitersAfterProgramAlwaysWaited) {
  for (int round = 0; round < 8; ++round) {
    const auto end = std::chrono::steady_clock::now() + 12ms;
    while (std::chrono::steady_clock::now() < end) {
      stream_->enqueue([] { return Outcome::success; });
      ASSERT_EQ(stream_->synchronize(), Outcome::success);
    }
    std::atomic<bool> ran{false};
    stream_->enqueue(succeeding([&] { ran.store(true); }));
    Outcome outcome = Outcome::failed;
    if (round % 2 == 0) {
      while (!ran) std::this_thread::yield();
    } else {
      while (!stream_->query(&outcome)) std::this_thread::yield();
      EXPECT_TRUE(ran);
    }
  }
}

// Skips the next `skipped` queued commands. Then counts the CountingCommands that follow, up to the
// first command of another type, or none if later commands may not begin early.
struct CountingCommand {
  std::vector<std::size_t>& seen;
  std::size_t skipped = 0;
  Outcome operator()(Lookahead& lookahead) const {
    std::size_t count = 0;
    lookahead.skip(skipped);
    while (lookahead.may_begin() && lookahead.next<CountingCommand>() != nullptr) ++count;
    seen.push_back(count);
    return Outcome::success;
  }
};

TEST_F(Streams, CommandSeesLaterCommands) {
  stream_->enqueue(succeeding([&] {
    while (!stream_->host_is_waiting()) std::this_thread::yield();
  }));
  std::vector<std::size_t> seen;
  constexpr std::size_t kCommands = 700;  // more than a batch of the queue holds
  const auto skipped = [](std::size_t number) {
    return std::min(number % 5 * 100, kCommands - 1 - number);
  };
  for (std::size_t number = 0; number < kCommands; ++number)
    stream_->enqueue(CountingCommand{seen, skipped(number)});
  stream_->enqueue([] { return Outcome::success; });
  stream_->enqueue(CountingCommand{seen});
  ASSERT_EQ(stream_->synchronize(), Outcome::success);
  ASSERT_EQ(seen.size(), kCommands + 1);
  for (std::size_t number = 0; number < kCommands; ++number)
    ASSERT_EQ(seen[number], kCommands - 1 - number - skipped(number));
  EXPECT_EQ(seen.back(), 0u);
}

// Later commands may read memory that the program or another stream has yet to write, so an earlier
// command must not see them.
TEST_F(Streams, CommandSeesNothingWhileOthersMayWrite) {
  const auto other = device_.create_stream();
  std::vector<std::size_t> unattended, beside_another;
  std::atomic<bool> ran{false};
  const auto enqueue_three = [&](std::vector<std::size_t>& seen) {
    for (int number = 0; number < 3; ++number) stream_->enqueue(CountingCommand{seen});
  };
  enqueue_three(unattended);
  stream_->enqueue(succeeding([&] { ran = true; }));
  while (!ran) std::this_thread::yield();
  EXPECT_EQ(unattended, std::vector<std::size_t>(3, 0));

  std::atomic<bool> go{false};
  other->enqueue(succeeding([&] {
    while (!go) std::this_thread::yield();
  }));
  stream_->enqueue(succeeding([&] {
    while (!stream_->host_is_waiting()) std::this_thread::yield();
  }));
  enqueue_three(beside_another);
  EXPECT_EQ(stream_->synchronize(), Outcome::success);
  EXPECT_EQ(beside_another, std::vector<std::size_t>(3, 0));
  go = true;
  EXPECT_EQ(other->synchronize(), Outcome::success);
}

// Queues additions to `sum`, which only the thread that runs the stream's work may access.
// Sometimes waits for the stream.
void add_and_wait_sometimes(Stream& stream, std::uint64_t& sum) {
  for (int number = 0; number < 2'000; ++number) {
    stream.enqueue(succeeding([&] { ++sum; }));
    if (number % 50 == 0) {
      EXPECT_EQ(stream.synchronize(), Outcome::success);
    }
  }
}

TEST_F(Streams, ServeManyProducersAndWaiters) {
  std::uint64_t sum = 0;
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&] { add_and_wait_sometimes(*stream_, sum); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(stream_->synchronize(), Outcome::success);
  EXPECT_EQ(sum, 8'000u);
}

void add_and_wait_each_time(Stream& stream, std::atomic<int>& runs) {
  for (int number = 0; number < 100; ++number) {
    stream.enqueue(succeeding([&runs] { ++runs; }));
    EXPECT_EQ(stream.synchronize(), Outcome::success);
  }
}

// One producer counts the commands in a new queue while another producer's commands run. It must
// not mistake the queue for a full one.
TEST_F(Streams, NewQueueOfManyProducersIsNotMistakenForFull) {
  for (int round = 0; round < 200; ++round) {
    const auto stream = device_.create_stream();
    std::atomic<int> runs{0};
    std::vector<std::thread> threads;
    threads.reserve(3);
    for (int thread = 0; thread < 3; ++thread)
      threads.emplace_back([&] { add_and_wait_each_time(*stream, runs); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(runs, 300);
    device_.destroy_stream(stream);
  }
}

TEST_F(Streams, WaitForEventsOfUnsynchronisedStreams) {
  const auto second = device_.create_stream();
  int value = 0;
  second->enqueue(succeeding([&] {
    std::this_thread::sleep_for(5ms);
    value = 1;
  }));
  Event event(false);
  event.record(*second);
  int seen = 0;
  stream_->enqueue(succeeding([&, capture = event.capture()] {
    Stream::wait_for(capture);
    seen = value;
  }));
  EXPECT_EQ(stream_->synchronize(), Outcome::success);
  EXPECT_EQ(seen, 1);
}

TEST_F(Streams, FullBlockedQueueGrows) {
  std::atomic<bool> go{false};
  stream_->enqueue(succeeding([&] {
    while (!go) std::this_thread::sleep_for(1ms);
  }));
  for (int number = 0; number < 65'540; ++number) stream_->enqueue([] { return Outcome::success; });
  go = true;
  EXPECT_EQ(stream_->synchronize(), Outcome::success);
}

// Records its number. The next `leaves` opportunistic runs return would_block instead.
struct RecordingCommand {
  std::vector<int>& seen;
  std::atomic<int>& opportunistic;
  std::atomic<int>& leaves;
  int number;
  std::shared_ptr<int> alive;

  Outcome operator()(Lookahead& lookahead) const {
    const bool passing = lookahead.wait_budget() != WaitBudget::unlimited;
    if (passing && leaves.fetch_sub(1) > 0) return Outcome::would_block;
    if (passing) ++opportunistic;
    const auto end = std::chrono::steady_clock::now() + 1us;  // longer than enqueue() takes
    while (std::chrono::steady_clock::now() < end) {
    }
    seen.push_back(number);
    return Outcome::success;
  }
};

TEST_F(Streams, ProducerRunsFullQueue) {
  const auto alive = std::make_shared<int>();
  std::vector<int> seen;
  std::atomic<int> opportunistic{0}, leaves{0};
  constexpr int kCommands = 40'000;
  for (int number = 0; number < kCommands; ++number) {
    if (number % 20'000 == 10'000) leaves = 2;
    stream_->enqueue(RecordingCommand{seen, opportunistic, leaves, number, alive});
    if (number % 20'000 == 15'000) stream_->enqueue([] { return Outcome::success; });
  }
  EXPECT_EQ(stream_->synchronize(), Outcome::success);
  EXPECT_GT(opportunistic, 0);
  EXPECT_EQ(alive.use_count(), 1) << "commands that have run must be destroyed";
  ASSERT_EQ(seen.size(), static_cast<std::size_t>(kCommands));
  for (int number = 0; number < kCommands; ++number)
    ASSERT_EQ(seen[static_cast<std::size_t>(number)], number);
}

TEST_F(Streams, TimedEventsRecordTime) {
  Event start(true), stop(true), untimed(false);
  EXPECT_THROW(static_cast<void>(start.time()), SynError);
  start.record(*stream_);
  stop.record(*stream_);
  EXPECT_EQ(stop.synchronize(), Outcome::success);
  EXPECT_GT(stop.time(), start.time());
  untimed.record(*stream_);
  EXPECT_THROW(static_cast<void>(untimed.time()), SynError);
}

TEST_F(Streams, DropActionsOfDestroyedOwners) {
  auto stream = device_.create_stream();
  const auto kept = std::make_shared<int>(0);
  const auto living = std::make_shared<int>(0);
  stream->at_destruction(living, [&living] { ++*living; });
  for (int round = 0; round < 3; ++round) {
    const auto owner = std::make_shared<int>(0);
    stream->at_destruction(owner, [kept] { ++*kept; });
    EXPECT_EQ(kept.use_count(), 2) << "round " << round;
  }
  stream->close();
  EXPECT_EQ(*living, 1);
  EXPECT_EQ(*kept, 0);
  EXPECT_EQ(kept.use_count(), 1);
}

TEST_F(Streams, FreedMemoryStaysUntilQueuedWorkHasRun) {
  const DeviceAddress address = device_.arena().allocate(100);
  std::atomic<bool> go{false};
  stream_->enqueue(succeeding([&] {
    while (!go) std::this_thread::sleep_for(1ms);
  }));
  device_.free_memory(address);
  EXPECT_NE(device_.arena().allocate(100) / kPageBytes, address / kPageBytes);
  go = true;
  EXPECT_EQ(stream_->synchronize(), Outcome::success);
  EXPECT_EQ(device_.arena().allocate(100) / kPageBytes, address / kPageBytes);
}

}  // namespace
}  // namespace hccl::device
