// SPDX-License-Identifier: Apache-2.0
// Tests programs whose streams depend on each other in unusual ways. Each program must end,
// whichever stream it waits for.
#include "operation.h"
#include "rank_test.h"

#include <array>
#include <atomic>
#include <deque>
#include <thread>

#include <gtest/gtest.h>

namespace hccl::test {
namespace {

Operation sum_of(std::size_t count, std::uint64_t seed) { return {.count = count, .seed = seed}; }

void verify_all(const std::deque<OperationRun>& runs) {
  for (const OperationRun& run : runs) run.verify();
}

// Synchronising two communicators' streams in opposite orders on adjacent ranks must not deadlock.
RANK_TEST(NoDeadlock, WhenRanksSynchroniseTwoCommunicatorsInOppositeOrders, std::vector{2, 5},
          std::vector{2}) {
  const std::array<Group, 2> groups{group, session.join_all(1)};
  const std::array<synStreamHandle, 2> streams{stream, session.make_stream()};
  const std::size_t first = static_cast<std::size_t>(world.rank) % 2;
  for (std::uint64_t round = 0; round < 40; ++round) {
    std::deque<OperationRun> runs;
    const std::size_t count = round % 3 == 0 ? 30'000 : 10;
    for (const std::size_t at : {first, 1 - first}) {
      runs.emplace_back(session, groups[at], sum_of(count, round));
      succeed(runs.back().queue(streams[at]));
    }
    succeed(synStreamSynchronize(streams[first]));
    succeed(synStreamSynchronize(streams[1 - first]));
    verify_all(runs);
  }
}

// Synchronising a stream that waits for another stream's event must complete both streams.
RANK_TEST(NoDeadlock, WhenOnlyTheStreamThatWaitsForAnEventIsSynchronised, std::vector{2, 4},
          std::vector{3}) {
  const std::array<synStreamHandle, 2> streams{stream, session.make_stream()};
  for (std::uint64_t round = 0; round < 40; ++round) {
    OperationRun run(session, group, sum_of(1 + round * 600, round));
    run.queue_upload(streams[1]);
    succeed(run.queue_collective(streams[1]));
    synEventHandle event = session.make_event();
    succeed(synEventRecord(event, streams[1]));
    succeed(synStreamWaitEvent(streams[0], event, 0));
    run.queue_download(streams[0]);
    succeed(synStreamSynchronize(streams[0]));
    succeed(synEventQuery(event));
    run.verify();
  }
}

// Even ranks queue operation 1 first, and make operation 0 wait for an event recorded after
// operation 1. Odd ranks queue operation 0 first. Both operations must complete.
RANK_TEST(NoDeadlock, WhenOperationsWaitForAChainOfEvents, std::vector{2, 4}, std::vector{3}) {
  const std::array<synStreamHandle, 2> streams{stream, session.make_stream()};
  std::deque<OperationRun> warm_up;  // numbers the streams in the same order on every rank
  for (synStreamHandle each : streams) {
    warm_up.emplace_back(session, group, sum_of(3, 3));
    succeed(warm_up.back().queue(each));
  }
  for (std::uint64_t round = 0; round < 40; ++round) {
    std::deque<OperationRun> runs;
    runs.emplace_back(session, group, sum_of(500 + round, round));
    runs.emplace_back(session, group, sum_of(20'000, round + 1));
    if (world.rank % 2 == 0) {
      synEventHandle event = session.make_event();
      succeed(runs[1].queue(streams[1]));
      succeed(synEventRecord(event, streams[1]));
      succeed(synStreamWaitEvent(streams[0], event, 0));
      succeed(runs[0].queue(streams[0]));
    } else {
      succeed(runs[0].queue(streams[0]));
      succeed(runs[1].queue(streams[1]));
    }
    succeed(synStreamSynchronize(streams[0]));
    succeed(synStreamSynchronize(streams[1]));
    verify_all(runs);
  }
}

struct OneDevice {
  synDeviceId device = SYN_INVALID_DEVICE_ID;
  hcclComm_t communicator = nullptr;
  synStreamHandle stream = nullptr;
  std::uint64_t buffer = 0;
  std::uint32_t value = 0;
};

// Eight devices join, each on its own thread. Then one thread queues calls for all devices and
// synchronises a single stream.
void one_thread_for_all(World& world) {
  constexpr int kDevices = 8;
  succeed(synInitialize());
  std::array<OneDevice, kDevices> all;
  hcclUniqueId id{};
  std::atomic<int> joined{0};
  std::vector<std::thread> threads;
  threads.reserve(kDevices);
  std::array<std::string, kDevices> troubles;
  succeed(hcclGetUniqueId(&id));
  for (int rank = 0; rank < kDevices; ++rank) {
    threads.emplace_back([&, rank] {
      OneDevice& own = all.at(static_cast<std::size_t>(rank));
      try {
        succeed(synDeviceAcquire(&own.device, nullptr));
        succeed(hcclCommInitRank(&own.communicator, kDevices, id, rank));
        succeed(synStreamCreateGeneric(&own.stream, own.device, 0));
        succeed(synDeviceMalloc(own.device, 4, 0, 0, &own.buffer));
        ++joined;
      } catch (const Failure& failure) {
        troubles.at(static_cast<std::size_t>(rank)) = failure.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& trouble : troubles) require(trouble.empty(), trouble);
  require_equal(joined.load(), kDevices, "devices that joined");

  for (int round = 0; round < 50; ++round) {
    for (OneDevice& one : all) {
      succeed(synMemsetD32Async(one.buffer, 5, 1, one.stream));
      void* buffer = device_pointer(one.buffer);
      succeed(hcclAllReduce(buffer, buffer, 1, hcclInt32, hcclSum, one.communicator, one.stream));
      succeed(synMemCopyAsync(one.stream, one.buffer, 4, host_address(&one.value), DRAM_TO_HOST));
    }
    const std::size_t waited = static_cast<std::size_t>(round) % all.size();
    succeed(synStreamSynchronize(all[waited].stream));
    require_equal(all[waited].value, 40U, "the sum");
  }
  for (OneDevice& one : all) succeed(synStreamSynchronize(one.stream));
  for (OneDevice& one : all) {
    require_equal(one.value, 40U, "the sum");
    succeed(synStreamDestroy(one.stream));
    succeed(hcclCommDestroy(one.communicator));
    succeed(synDeviceRelease(one.device));
  }
  succeed(synDestroy());
  static_cast<void>(world);
}

TEST(NoDeadlock, WhenOneThreadQueuesForEightDevicesAndWaitsForOne) {
  EXPECT_EQ(failures(run_ranks(1, one_thread_for_all)), "");
}

}  // namespace
}  // namespace hccl::test
