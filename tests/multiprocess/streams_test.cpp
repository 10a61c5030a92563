// SPDX-License-Identifier: Apache-2.0
// Tests the order and progress of work on several streams and communicators: overlapping members,
// different orders, long queues, no waiter or several, and memory that is freed while in use.

#include "operation.h"
#include "rank_test.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <thread>

#include <gtest/gtest.h>

namespace hccl::test {
namespace {

Operation all_reduce_of(std::size_t count, std::uint64_t seed) {
  return {.count = count, .offset = seed % 5, .seed = seed};
}

// Communicators of all ranks, of all ranks in reverse order, and of pairs must work concurrently on
// separate streams.
RANK_TEST(Communicators, OverlapInAnyOrderOnSeparateStreams, std::vector{4}, std::vector{4}) {
  const Group reversed = session.join_members(1, {3, 2, 1, 0});
  const bool low = world.rank < 2;
  const Group pair = session.join_members(low ? 2 : 3, low ? std::vector<int>{1, 0}  //
                                                           : std::vector<int>{2, 3});
  const std::vector<const Group*> groups{&group, &reversed, &pair};
  std::vector<synStreamHandle> streams;
  for (std::size_t at = 0; at < groups.size(); ++at) streams.push_back(session.make_stream());

  std::deque<OperationRun> runs;
  for (std::uint64_t round = 0; round < 20; ++round) {
    for (std::size_t at = 0; at < groups.size(); ++at) {
      runs.emplace_back(session, *groups[at], all_reduce_of(1 + round * 977, round * 10 + at));
      succeed(runs.back().queue(streams[at]));
    }
  }
  synchronize(streams);
  for (const OperationRun& run : runs) run.verify();
  int count = 0;
  int rank = -1;
  int device = -1;
  succeed(hcclCommCount(pair.handle, &count));
  succeed(hcclCommUserRank(reversed.handle, &rank));
  succeed(hcclCommSynDevice(group.handle, &device));
  require_equal(count, 2, "ranks of the pair");
  require_equal(rank, 3 - world.rank, "rank in the reversed communicator");
  require_equal(device, static_cast<int>(session.device()), "device");
}

// Calls of one communicator must work when they alternate between four streams.
RANK_TEST(Communicators, ServeSeveralStreams, std::vector{3, 8}) {
  std::array<synStreamHandle, 4> streams{};
  std::ranges::generate(streams, [&] { return session.make_stream(); });
  std::deque<OperationRun> runs;
  for (std::uint64_t round = 0; round < 40; ++round) {
    runs.emplace_back(session, group, all_reduce_of(5 + round * 501, round));
    succeed(runs.back().queue(streams[round * 7 % streams.size()]));
  }
  synchronize(streams);
  for (const OperationRun& run : runs) run.verify();
}

// Creates, finalises and destroys communicators on one device. Finalising again must succeed, and
// destroying again must fail.
void create_and_destroy(World& world) {
  Session session(world);
  synStreamHandle stream = session.make_stream();
  for (int round = 0; round < 10; ++round) {
    const Group group = session.join_all(round);
    run_and_verify(session, group, stream, all_reduce_of(1000, static_cast<std::uint64_t>(round)));
    succeed(hcclCommFinalize(group.handle));
    succeed(hcclCommFinalize(group.handle));
    session.forget_communicators();
    succeed(hcclCommDestroy(group.handle));
    expect_code(hcclCommDestroy(group.handle), hcclInvalidArgument);
  }
  session.finish();
}

TEST(Communicators, CanBeCreatedAndDestroyedRepeatedly) {
  EXPECT_EQ(failures(run_ranks(3, create_and_destroy)), "");
}

// Joins with HCCL_COMM_ID: only rank 0 requests an id, and the other ranks pass zeros.
RANK_BODY(by_comm_id) {
  const Group second = session.join_all(1);  // HCCL_COMM_ID applies only to the first communicator
  for (const Group* each : {&group, &second})
    run_and_verify(session, *each, stream, all_reduce_of(4321, 9));
}

TEST(Communicators, JoinByCommId) {
  const RankOptions options{.comm_id = true};
  EXPECT_EQ(failures(run_ranks(8, in_session(by_comm_id), options)), "");
}

TEST(Communicators, JoinByCommIdInAnyOrder) {
  const RankOptions options{.comm_id = true};
  const auto wait = [](const World& world) {
    if (world.rank == 0) usleep(400'000);
    if (world.rank == 2) usleep(700'000);
  };
  EXPECT_EQ(failures(run_ranks(4, in_session(by_comm_id, wait), options)), "");
}

// Copies only the used bytes of an id, sets `length` by hand, and joins with the copy.
void copies_used_bytes(World& world) {
  Session session(world);
  hcclUniqueId id{};
  if (world.rank == 0) {
    succeed(hcclGetUniqueId(&id));
    require(id.length > 0 && id.length <= HCCL_UNIQUE_ID_MAX_BYTES, "a length within bounds");
    world.board->publish_id(0, id);
  } else {
    const hcclUniqueId made = world.board->await_id(0);
    std::memcpy(id.internal, made.internal, made.length);
    id.length = made.length;
  }
  hcclComm_t communicator = nullptr;
  succeed(hcclCommInitRank(&communicator, world.size, id, world.rank));
  succeed(hcclCommDestroy(communicator));
  session.finish();
}

TEST(Communicators, NeedOnlyTheUsedBytesOfAnId) {
  EXPECT_EQ(failures(run_ranks(3, copies_used_bytes)), "");
}

void* pointer(const DeviceMemory& memory) { return memory.pointer(); }

// A stream must accept thousands of operations, each dependent on the previous one, before the
// first wait.
RANK_TEST(Streams, QueueThousandsOfOperationsBeforeTheFirstWait, std::vector{2, 7}) {
  constexpr int kOperations = 3000;
  const Group other = session.join_all(1);
  const DeviceMemory value(session.device(), 4);
  succeed(synMemsetD32Async(value.address(), 1, 1, stream));
  std::vector<std::uint32_t> snapshots(kOperations / 100);
  for (int operation = 0; operation < kOperations; ++operation) {
    hcclComm_t chosen = operation % 3 == 0 ? other.handle : group.handle;
    succeed(hcclAllReduce(pointer(value), pointer(value), 1, hcclInt32, hcclSum, chosen, stream));
    if (operation % 50 == 49) succeed(synMemsetD32Async(value.address(), 3, 1, stream));
    if (operation % 100 == 98) {
      succeed(synMemCopyAsync(stream, value.address(), 4,
                              host_address(&snapshots[static_cast<std::size_t>(operation / 100)]),
                              DRAM_TO_HOST));
    }
  }
  succeed(synStreamSynchronize(stream));
  std::uint32_t expected = 3;
  for (int operation = 0; operation < 49; ++operation) {
    expected *= static_cast<std::uint32_t>(world.size);
  }
  for (const std::uint32_t snapshot : snapshots) {
    require_equal(snapshot, expected, "a copy between the operations");
  }
}

// A queued all-reduce of 64 MiB must complete while no thread waits for it.
RANK_TEST(Streams, ProgressWithoutAWaiter, 4) {
  constexpr std::size_t kCount = std::size_t{16} << 20;
  const DeviceMemory send(session.device(), kCount * 4);
  const DeviceMemory receive(session.device(), kCount * 4);
  synEventHandle event = session.make_event();
  succeed(synMemsetD32Async(send.address(), static_cast<std::uint32_t>(world.rank + 1), kCount,
                            stream));
  succeed(hcclAllReduce(pointer(send), pointer(receive), kCount, hcclInt32, hcclSum, group.handle,
                        stream));
  succeed(synEventRecord(event, stream));
  synStatus status = synBusy;
  for (int sleeps = 0; sleeps < 20 && status == synBusy;
       ++sleeps) {  // more than one sleep if cores are scarce
    std::this_thread::sleep_for(std::chrono::seconds(2));
    status = synEventQuery(event);
  }
  succeed(status);
  std::vector<std::uint32_t> result(kCount);
  download(stream, receive.address(), result);
  succeed(synStreamSynchronize(stream));
  const auto expected = static_cast<std::uint32_t>(world.size * (world.size + 1) / 2);
  for (const std::uint32_t element : result) require(element == expected, "a wrong sum");
}

// Several threads must be able to wait for one stream and its events at once.
RANK_TEST(Streams, AllowSeveralWaiters, std::vector{3}, std::vector{2}) {
  for (std::uint64_t round = 0; round < 20; ++round) {
    std::deque<OperationRun> runs;
    std::vector<synEventHandle> events(3);
    for (std::size_t at = 0; at < events.size(); ++at) {
      const Operation operation{.count = 1 + 10'000 * at, .seed = round * 10 + at};
      runs.emplace_back(session, group, operation);
      succeed(runs.back().queue(stream));
      succeed(synEventCreate(&events[at], session.device(), EVENT_COLLECT_TIME));
      succeed(synEventRecord(events[at], stream));
    }
    std::vector<std::thread> waiters;
    std::atomic<int> trouble{0};
    for (synEventHandle event : events) {
      waiters.emplace_back([&, event] { trouble += synEventSynchronize(event); });
      waiters.emplace_back([&] { trouble += synStreamSynchronize(stream); });
    }
    for (std::thread& waiter : waiters) waiter.join();
    require_equal(trouble.load(), 0, "sum of the waiters' statuses");
    std::uint64_t elapsed = ~std::uint64_t{0};
    succeed(synEventElapsedTime(&elapsed, events.front(), events.back()));
    require(elapsed < std::uint64_t{60'000'000'000}, "events have an order");
    for (synEventHandle event : events) succeed(synEventDestroy(event));
    for (const OperationRun& run : runs) run.verify();
  }
}

// Memory that is freed while an operation on it is queued must stay intact until the operation
// completes, even if the address range is allocated again.
RANK_TEST(Streams, KeepFreedMemoryUntilTheirWorkCompletes, 3) {
  constexpr std::size_t kCount = 50'000;
  synStreamHandle other = session.make_stream();
  const DeviceMemory receive(session.device(), kCount * 4);
  std::vector<std::uint32_t> result(kCount);
  for (std::uint32_t round = 0; round < 20; ++round) {
    std::uint64_t send = 0;
    succeed(synDeviceMalloc(session.device(), kCount * 4, 0, 0, &send));
    succeed(synMemsetD32Async(send, round + 1, kCount, stream));
    succeed(hcclAllReduce(device_pointer(send), pointer(receive), kCount, hcclInt32, hcclSum,
                          group.handle, stream));
    download(stream, receive.address(), result);
    succeed(synDeviceFree(session.device(), send, 0));
    std::uint64_t next = 0;
    succeed(synDeviceMalloc(session.device(), kCount * 4, 0, 0, &next));
    succeed(synMemsetD32Async(next, 0xFFFFFFFFU, kCount, other));
    succeed(synStreamSynchronize(other));
    succeed(synStreamSynchronize(stream));
    succeed(synDeviceFree(session.device(), next, 0));
    const std::uint32_t expected = (round + 1) * static_cast<std::uint32_t>(world.size);
    for (const std::uint32_t element : result) require_equal(element, expected, "a sum");
  }
}

// A program may destroy a stream and then its communicator while work is queued, as hccl_demo does.
RANK_TEST(Streams, AreDrainedWhenDestroyed, 4) {
  const DeviceMemory value(session.device(), 4000);
  for (int operation = 0; operation < 100; ++operation) {
    succeed(hcclAllReduce(pointer(value), pointer(value), 1000, hcclFloat32, hcclSum, group.handle,
                          stream));
  }
}

}  // namespace
}  // namespace hccl::test
