// SPDX-License-Identifier: Apache-2.0
// Tests the death of a rank, at random times and after chosen calls. Every survivor's error must
// name the dead rank. In half of the runs with a random time, the rank forks a child that may
// outlive the rank. After these runs, no resource may be left on the machine.
#include "faults.h"
#include "leftovers.h"
#include "rank_test.h"

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <random>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace hccl::test {
namespace {

enum class Orphan { none, before_the_library, after_joining };

// Forks a child that holds the inherited descriptors open until the run ends.
void fork_orphan(const World& world) {
  if (fork() != 0) return;
  char nothing = 0;
  while (read(world.lifeline, &nothing, 1) > 0) {
  }
  _exit(0);
}

// Returns whether this rank has joined. If joining failed, checks that the error names the victim.
bool join_or_expect_victim(Session& session, Group& group, int victim) {
  World world = session.world();
  const hcclUniqueId id = share_id(world);
  group.rank = world.rank;
  group.members.resize(static_cast<std::size_t>(world.size));
  const hcclResult_t result = hcclCommInitRank(&group.handle, world.size, id, world.rank);
  if (result == hcclSuccess) return true;
  expect_missing_rank(result);
  require(names_rank(last_hccl_message(), victim), last_hccl_message());
  return false;
}

// Runs all-reduces of random sizes until a call fails. Synchronises after every one to four calls.
void reduce_until_failure(Session& session, const Group& group, synStreamHandle stream,
                          unsigned long long seed) {
  std::mt19937_64 random(seed);
  const DeviceMemory send(session.device(), std::size_t{4} << 20);
  const DeviceMemory receive(session.device(), std::size_t{4} << 20);
  for (;;) {
    const std::size_t count = random() % (random() % 8 == 0 ? 1'000'000 : 3000);
    const std::size_t queued = 1 + random() % 4;
    for (std::size_t at = 0; at < queued; ++at) {
      const hcclResult_t result = hcclAllReduce(send.pointer(), receive.pointer(), count,
                                                hcclFloat32, hcclSum, group.handle, stream);
      if (result == hcclSystemError) return;
      succeed(result);
    }
    const synStatus status = synStreamSynchronize(stream);
    if (status == synFailHccl) return;
    succeed(status);
  }
}

RankFunction victims_and_survivors(int victim, Orphan orphan, unsigned long long seed) {
  return [=](World& world) {
    const bool dies = world.rank == victim;
    if (dies && orphan == Orphan::before_the_library) fork_orphan(world);
    Session session(world);
    Group group;
    if (!join_or_expect_victim(session, group, victim)) return;
    if (dies && orphan == Orphan::after_joining) fork_orphan(world);
    synStreamHandle stream = session.make_stream();
    reduce_until_failure(session, group, stream, seed);
    expect_failed(group, hcclSystemError, victim);
    expect_usable_remains(session, group, stream, hcclSystemError);
    session.finish();
  };
}

TEST(Death, AtARandomTimeIsReportedToEverySurvivor) {
  isolate_network();
  const auto before = shared_names();
  const unsigned long long seed = test_seed();
  std::cout << "HCCL_TEST_SEED=" << seed << " repeats this run\n";
  std::mt19937_64 random(seed);
  for (int iteration = 0; iteration < scaled(20); ++iteration) {
    constexpr std::array kOrphans{Orphan::none, Orphan::before_the_library, Orphan::none,
                                  Orphan::after_joining};
    const RankOptions options{.environment = {{"HCCL_INIT_TIMEOUT", "5"}},
                              .victim = iteration % 5 == 4 ? static_cast<int>(1 + random() % 7) : 3,
                              .kill_after_us = static_cast<long>(random() % 400'000)};
    const Orphan orphan = kOrphans.at(static_cast<std::size_t>(iteration) % kOrphans.size());
    const auto outcomes =
        run_ranks(8, victims_and_survivors(options.victim, orphan, random()), options);
    ASSERT_EQ(failures(outcomes, options.victim), "")
        << "iteration " << iteration << ": rank " << options.victim << " killed after "
        << options.kill_after_us << " us, seed " << seed;
  }
  EXPECT_EQ(leftovers(before), "");
}

// Returns a rank function in which the victim dies after an operation. The operation must still
// succeed on the other ranks.
RankFunction dies_early(int victim) {
  return in_session([victim](RANK_PARAMETERS) {
    synEventHandle event = session.make_event();
    OperationRun run(session, group, all_reduce_of(1000));
    succeed(run.queue(stream));
    succeed(synEventRecord(event, stream));
    succeed(synEventSynchronize(event));
    world.board->barrier(0, world.size);
    if (world.rank == victim) kill(getpid(), SIGKILL);
    await_async_error(group);
    succeed(synEventQuery(event));
    succeed(synEventSynchronize(event));
    run.verify();
    expect_failed(group, hcclSystemError, victim);
    expect_usable_remains(session, group, stream, hcclSystemError);
  });
}

TEST(Death, KeepsCompletedOperationsSuccessful) {
  for (const int victim : {0, 1}) {
    const RankOptions options{.victim = victim};
    EXPECT_EQ(failures(run_ranks(3, dies_early(victim), options), victim), "");
  }
}

// A communicator without the dead rank must still work on the same stream.
RANK_BODY(others_continue) {
  if (world.rank == 2) {
    world.board->barrier(0, world.size);
    kill(getpid(), SIGKILL);
  }
  const Group pair = session.join_members(1, {1, 0});
  world.board->barrier(0, world.size);
  OperationRun lost(session, group, all_reduce_of(10));
  const hcclResult_t result = lost.queue(stream);
  OperationRun kept(session, pair, all_reduce_of(5000));
  succeed(kept.queue(stream));
  const synStatus status = synStreamSynchronize(stream);
  require(result == hcclSystemError || status == synFailHccl, "the fault is reported");
  kept.verify();
  await_async_error(group);
  expect_failed(group, hcclSystemError, 2);
  hcclResult_t code = hcclInternalError;
  succeed(hcclCommGetAsyncError(pair.handle, &code));
  require_equal(static_cast<int>(code), 0, "the other communicator's error");
}

TEST(Death, DoesNotAffectOtherCommunicators) {
  const RankOptions options{.victim = 2};
  EXPECT_EQ(failures(run_ranks(3, in_session(others_continue), options), options.victim), "");
}

constexpr rlim_t kMostCore = rlim_t{72} << 20;

RANK_BODY(aborts_with_a_core) {
  const DeviceMemory large(session.device(), std::size_t{4} << 30);
  OperationRun run(session, group, all_reduce_of(200'000));
  succeed(run.queue(stream));
  succeed(synStreamSynchronize(stream));
  world.board->barrier(0, world.size);
  if (world.rank == 3) {
    const rlimit unlimited{RLIM_INFINITY, RLIM_INFINITY};
    static_cast<void>(setrlimit(RLIMIT_CORE, &unlimited));
    abort();
  }
  reduce_until_failure(session, group, stream, 1);
  expect_failed(group, hcclSystemError, 3);
}

TEST(Death, BySigabrtIsReportedAndDumpsASmallCore) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / join("hccl-core-test-", getpid());
  fs::create_directory(folder);
  const fs::path here = fs::current_path();
  fs::current_path(folder);
  const RankOptions options{.victim = 3};
  const auto outcomes = run_ranks(8, in_session(aborts_with_a_core), options);
  fs::current_path(here);
  EXPECT_EQ(failures(outcomes, options.victim), "");
  EXPECT_EQ(outcomes[3].signal, SIGABRT);
  for (const auto& entry : fs::directory_iterator(folder)) {
    // With a sanitizer, the core dump also contains the sanitizer's memory.
    if (!sanitized()) {
      EXPECT_LT(fs::file_size(entry), kMostCore) << entry.path();
    }
  }
  fs::remove_all(folder);
}

}  // namespace
}  // namespace hccl::test
