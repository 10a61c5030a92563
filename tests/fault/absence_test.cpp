// SPDX-License-Identifier: Apache-2.0
// Tests time limits, hang reports and hcclCommAbort with ranks that make a call late or never, or
// are stopped.
#include "faults.h"
#include "rank_test.h"

#include <atomic>
#include <chrono>
#include <iostream>
#include <random>
#include <thread>

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace hccl::test {
namespace {

constexpr int kAbsent = 1;

void expect_sync_fails(synStreamHandle stream) {
  expect_code(synStreamSynchronize(stream), synFailHccl);
}

// Rank 1 calls nothing. The calls of the other ranks must time out with an error that names rank 1,
// and the communicator must fail on rank 1 too.
RANK_TEST(Absence, TimesOutAndNamesTheRank, std::vector{3}, std::vector{3},
          with_environment({{"HCCL_TIMEOUT", "2"}})) {
  if (world.rank != kAbsent) {
    OperationRun run(session, group, all_reduce_of(1000));
    synEventHandle event = session.make_event();
    succeed(run.queue(stream));
    succeed(synEventRecord(event, stream));
    expect_sync_fails(stream);
    run.verify_untouched();
    expect_code(synEventQuery(event), synFailHccl);
    expect_code(synEventSynchronize(event), synFailHccl);
  } else {
    await_async_error(group);
  }
  expect_failed(group, hcclSystemError, kAbsent);
  expect_usable_remains(session, group, stream, hcclSystemError);
}

RANK_BODY(arrives_late) {
  OperationRun run(session, group, all_reduce_of(1000));
  if (world.rank == kAbsent) std::this_thread::sleep_for(std::chrono::seconds(4));
  succeed(run.queue(stream));
  succeed(synStreamSynchronize(stream));
  run.verify();
}

TEST(Absence, IsReportedOnceAndFailsNothing) {
  const auto outcomes =
      run_ranks(3, in_session(arrives_late), with_environment({{"HCCL_HANG_REPORT", "1"}}));
  EXPECT_EQ(failures(outcomes), "");
  const std::string reports = outcomes[0].stderr_text + outcomes[2].stderr_text;
  EXPECT_TRUE(names_rank(reports, kAbsent)) << reports;
  for (const RankOutcome& outcome : outcomes) {
    const std::string& text = outcome.stderr_text;
    const std::size_t first = text.find("all_reduce");
    EXPECT_TRUE(first == std::string::npos || text.find("hccl WARN", first) == std::string::npos)
        << "more than one report:\n"
        << text;
  }
}

TEST(Absence, IsNotReportedWhenReportsAreOff) {
  const auto outcomes =
      run_ranks(3, in_session(arrives_late), with_environment({{"HCCL_HANG_REPORT", "0"}}));
  EXPECT_EQ(failures(outcomes), "");
  for (const RankOutcome& outcome : outcomes) EXPECT_EQ(outcome.stderr_text, "");
}

void never_joins(World& world) {
  Session session(world);
  hcclUniqueId id{};
  if (world.rank == 0) {
    succeed(hcclGetUniqueId(&id));
    world.board->publish_id(0, id);
  }
  if (world.rank != 2) {
    id = world.board->await_id(0);
    hcclComm_t communicator = nullptr;
    const hcclResult_t result = hcclCommInitRank(&communicator, world.size, id, world.rank);
    expect_missing_rank(result);
    require(names_rank(last_hccl_message(), 2), last_hccl_message());
  }
  world.board->barrier(0, world.size);
  session.finish();
}

TEST(Absence, AtTheRendezvousNamesTheRank) {
  const auto options = with_environment({{"HCCL_INIT_TIMEOUT", "1.5"}});
  EXPECT_EQ(failures(run_ranks(4, never_joins, options)), "");
}

// An abort by rank 0 must unblock ranks 0 and 2 and must fail the communicator on rank 1, which has
// called nothing.
RANK_TEST(Abort, UnblocksAllRanks, std::vector{3}, std::vector{3}) {
  OperationRun run(session, group, all_reduce_of(1000));
  if (world.rank != kAbsent) {
    succeed(run.queue(stream));
    std::thread waiter([&] {
      const synStatus status = synStreamSynchronize(stream);
      world.board->counter(world.rank).store(status);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    if (world.rank == 0) {
      session.forget_communicators();
      succeed(hcclCommAbort(group.handle));
    }
    waiter.join();
    require_equal(world.board->counter(world.rank).load(), std::int64_t{synFailHccl}, "waiting");
  }
  if (world.rank != 0) {
    await_async_error(group);
    expect_failed(group, hcclSystemError, 0);
    expect_usable_remains(session, group, stream, hcclSystemError);
  } else {
    expect_code(hcclBarrier(group.handle, stream), hcclInvalidArgument);
  }
}

// Runs all-reduces until the communicator fails or no longer exists.
void reduce_until_failure(Session& session, const Group& group, synStreamHandle stream) {
  const DeviceMemory buffer(session.device(), 4'000'000);
  void* memory = buffer.pointer();
  while (hcclAllReduce(memory, memory, 1'000'000, hcclFloat32, hcclMax, group.handle, stream) ==
             hcclSuccess &&
         synStreamSynchronize(stream) == synSuccess) {
  }
}

void abort_after(std::chrono::microseconds delay, hcclComm_t communicator) {
  std::this_thread::sleep_for(delay);
  static_cast<void>(hcclCommAbort(communicator));
}

// Returns a rank function of 15 rounds. In each round, a random rank aborts a new communicator at a
// random time during all-reduces.
RankFunction aborts_at_random_times(unsigned long long seed) {
  return [seed](World& world) {
    std::mt19937_64 random(seed);
    Session session(world);
    synStreamHandle stream = session.make_stream();
    for (int round = 0; round < 15; ++round) {
      const Group group = session.join_all(round);
      session.forget_communicators();
      const auto aborter = static_cast<int>(random() % static_cast<unsigned>(world.size));
      const auto delay = std::chrono::microseconds(random() % 20'000);
      std::thread other;
      if (world.rank == aborter) other = std::thread(abort_after, delay, group.handle);
      reduce_until_failure(session, group, stream);
      if (other.joinable()) {
        other.join();
      } else {
        expect_failed(group, hcclSystemError, aborter);
        succeed(hcclCommDestroy(group.handle));
      }
    }
    session.finish();
  };
}

TEST(Abort, WorksAtAnyTime) {
  const unsigned long long seed = test_seed();
  EXPECT_EQ(failures(run_ranks(4, aborts_at_random_times(seed))), "") << "HCCL_TEST_SEED=" << seed;
  EXPECT_EQ(failures(run_ranks_as_threads(4, aborts_at_random_times(seed))), "")
      << "HCCL_TEST_SEED=" << seed;
}

// Why the operation fails on the other ranks while the last rank is stopped.
enum class Ending { timeout, abort };

// Stops the last rank after `delay_us` microseconds and, for Ending::abort, then aborts the
// communicator. Runs on a second thread of rank 0.
void stop_last_rank(World& world, unsigned delay_us, Ending ending, hcclComm_t communicator) {
  std::this_thread::sleep_for(std::chrono::microseconds(delay_us));
  kill(static_cast<pid_t>(world.board->counter(world.size - 1).load()), SIGSTOP);
  if (ending == Ending::timeout) return;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  static_cast<void>(hcclCommAbort(communicator));
}

// Returns a rank function in which the last rank is stopped (SIGSTOP) after `delay_us` microseconds
// of in-place operations, and resumes after the other ranks have failed. The late stores of the
// resumed rank must not reach memory that the other ranks have reused.
RankFunction stopped(unsigned delay_us, Ending ending) {
  return in_session([=](RANK_PARAMETERS) {
    constexpr std::size_t kCount = 16 << 20;
    constexpr std::uint32_t kPattern = 0xABCDEF01;
    const int last = world.size - 1;
    session.forget_communicators();
    const DeviceMemory buffer(session.device(), kCount * 4);
    world.board->counter(world.rank).store(getpid());
    void* memory = buffer.pointer();
    const auto reduce = [&] {
      return hcclAllReduce(memory, memory, kCount, hcclInt32, hcclSum, group.handle, stream);
    };
    succeed(reduce());
    succeed(synStreamSynchronize(stream));
    world.board->barrier(0, world.size);
    std::thread stopper;
    if (world.rank == 0)
      stopper = std::thread([&] { stop_last_rank(world, delay_us, ending, group.handle); });
    while (reduce() == hcclSuccess && synStreamSynchronize(stream) == synSuccess) {
    }
    if (stopper.joinable()) stopper.join();
    const bool aborted = ending == Ending::abort;
    if (!aborted || world.rank != 0) expect_failed(group, hcclSystemError, aborted ? 0 : last);
    if (world.rank != last) {
      succeed(synMemsetD32Async(buffer.address(), kPattern, kCount, stream));
      succeed(synStreamSynchronize(stream));
      world.board->barrier(1, world.size - 1);
      if (world.rank == 0) kill(static_cast<pid_t>(world.board->counter(last).load()), SIGCONT);
    }
    world.board->barrier(2, world.size);
    if (world.rank != last) {
      std::vector<std::uint32_t> after(kCount);
      download(stream, buffer.address(), after);
      succeed(synStreamSynchronize(stream));
      require(after == std::vector<std::uint32_t>(kCount, kPattern), "a late store");
    }
    if (!aborted || world.rank != 0) succeed(hcclCommDestroy(group.handle));
  });
}

void survive_a_stopped_rank(Ending ending) {
  std::mt19937_64 random(test_seed());
  const auto options =
      with_environment({{"HCCL_TIMEOUT", short_timeout()}, {"HCCL_DEBUG", "INFO"}});
  int inside_a_tile = 0;
  for (int round = 0; round < scaled(3); ++round) {
    const auto delay = static_cast<unsigned>(random() % 100'000);
    const auto outcomes = run_ranks(4, stopped(delay, ending), options);
    EXPECT_EQ(failures(outcomes), "") << "stopped after " << delay << " us";
    inside_a_tile += contains(outcomes[0].stderr_text, "stuck inside a tile") ? 1 : 0;
  }
  // A rank may be stopped between two tiles. In 30 or more rounds, at least one rank must be
  // stopped inside a tile.
  testing::Test::RecordProperty("stopped_inside_a_tile", inside_a_tile);
  std::cout << inside_a_tile << " of " << scaled(3) << " stops were inside a tile\n";
  if (scaled(3) >= 30) {
    EXPECT_GT(inside_a_tile, 0);
  }
}

TEST(Absence, OfAStoppedRankKeepsPeersMemoryUsable) { survive_a_stopped_rank(Ending::timeout); }

TEST(Abort, WithAStoppedRankKeepsPeersMemoryUsable) { survive_a_stopped_rank(Ending::abort); }

// Work on `behind` is queued behind work on `group`, which never completes because rank 1 calls
// nothing. An abort of `behind` must unblock hcclCommFinalize on `behind`.
RANK_TEST(Abort, UnblocksAFinalizeBehindAnotherCommunicator, 2) {
  const Group behind = session.join_all(1);
  if (world.rank == 0) {
    OperationRun first(session, group, all_reduce_of(1000));
    OperationRun second(session, behind, all_reduce_of(1000));
    succeed(first.queue(stream));
    succeed(second.queue(stream));
    std::atomic<bool> done{false};
    std::thread waiter([&] {
      require(hcclCommFinalize(behind.handle) == hcclSystemError, "finalize reports the abort");
      done = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    require(!done, "nothing was queued that can wait");
    succeed(hcclCommAbort(behind.handle));
    waiter.join();  // while the other communicator's work still waits
    require(synStreamQuery(stream) == synBusy, "the other communicator still waits");
    succeed(hcclCommAbort(group.handle));
    expect_sync_fails(stream);
    session.forget_communicators();
  } else {
    await_async_error(behind);
    await_async_error(group);
  }
}

// hcclCommAbort on another thread must unblock an hcclCommDestroy that waits for work that cannot
// complete.
RANK_TEST(Abort, UnblocksADestroy, 2) {
  OperationRun run(session, group, all_reduce_of(1000));
  if (world.rank == 0) {
    succeed(run.queue(stream));
    std::thread destroyer([&] { succeed(hcclCommDestroy(group.handle)); });
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    succeed(hcclCommAbort(group.handle));
    destroyer.join();
    session.forget_communicators();
    expect_sync_fails(stream);
  } else {
    await_async_error(group);
  }
}

// A stream that waits for an event recorded after a failed operation must fail too.
RANK_TEST(Absence, FailsStreamsThatWaitForTheResult, 2, with_environment({{"HCCL_TIMEOUT", "1"}})) {
  synStreamHandle first = session.make_stream();
  synStreamHandle second = session.make_stream();
  if (world.rank != kAbsent) {
    OperationRun run(session, group, all_reduce_of(1000));
    synEventHandle event = session.make_event();
    succeed(run.queue(first));
    succeed(synEventRecord(event, first));
    succeed(synStreamWaitEvent(second, event, 0));
    expect_sync_fails(second);
    succeed(synStreamSynchronize(second));
  } else {
    await_async_error(group);
  }
}

}  // namespace
}  // namespace hccl::test
