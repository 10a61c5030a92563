// SPDX-License-Identifier: Apache-2.0
// Order and progress on streams: long queues, work that nobody waits for, several waiters, memory
// freed in flight.
#include "operation.h"
#include "rank_test.h"

#include <atomic>
#include <chrono>
#include <deque>
#include <thread>

#include <gtest/gtest.h>

namespace hccl::test {
namespace {

void* pointer(const DeviceMemory& memory) { return memory.pointer(); }

// Thousands of operations before the first wait; each multiplies what the one before has left.
RANK_TEST(Streams, TakeThousandsOfOperationsBeforeTheFirstWait, std::vector{2, 7}) {
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

// 64 MiB queued, then no library call for two seconds: the work is done by then.
RANK_TEST(Streams, MoveOnWhileNobodyWaits, 4) {
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
       ++sleeps) {  // more than one if cores are scarce
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

// Several threads wait for the same stream and for events of it at once.
RANK_TEST(Streams, HaveAnyNumberOfWaiters, std::vector{3}, std::vector{2}) {
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

// Memory freed while its operation is queued stays usable for it, whoever allocates next.
RANK_TEST(Streams, KeepFreedMemoryUntilTheirWorkIsDone, 3) {
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

// Streams first, then the communicator, with work still queued, as hccl_demo does.
RANK_TEST(Streams, AreDrainedWhenDestroyed, 4) {
  const DeviceMemory value(session.device(), 4000);
  for (int operation = 0; operation < 100; ++operation) {
    succeed(hcclAllReduce(pointer(value), pointer(value), 1000, hcclFloat32, hcclSum, group.handle,
                          stream));
  }
}

}  // namespace
}  // namespace hccl::test
