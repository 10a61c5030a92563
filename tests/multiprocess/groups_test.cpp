// SPDX-License-Identifier: Apache-2.0
// Tests groups of messages and collectives on several streams and communicators, in orders that
// differ between ranks.
#include "elements.h"
#include "messages.h"
#include "operation.h"
#include "rank_test.h"

#include <thread>

#include <gtest/gtest.h>

namespace hccl::test {
namespace {

int next_in(const Group& group) { return (group.rank + 1) % group.size(); }
int previous_in(const Group& group) { return (group.rank + group.size() - 1) % group.size(); }

// Within a group, messages between two ranks must match in call order, even if they are on
// different streams.
RANK_TEST(Groups, KeepCallOrderAcrossStreams, 2) {
  const std::array streams{session.make_stream(), session.make_stream()};
  Messages messages(session, group);
  const int peer = 1 - group.rank;
  succeed(hcclGroupStart());
  // Only rank 1 uses the second stream before the first.
  if (group.rank == 0) {
    succeed(messages.send(peer, 10, hcclInt32, 1, streams[0]));
    succeed(messages.send(peer, 10, hcclInt32, 2, streams[1]));
    succeed(messages.receive(peer, 10, hcclInt32, 3, streams[0]));
  } else {
    succeed(messages.send(peer, 10, hcclInt32, 3, streams[1]));
    succeed(messages.receive(peer, 10, hcclInt32, 1, streams[0]));
    succeed(messages.receive(peer, 10, hcclInt32, 2, streams[1]));
  }
  succeed(hcclGroupEnd());
  synchronize(streams);
  messages.verify(streams[0]);
}

// Collectives must match on all ranks, even if the ranks' groups start with different streams.
RANK_TEST(Groups, MatchCollectivesAcrossRanks, 3) {
  const std::array streams{stream, session.make_stream()};
  Messages messages(session, group);
  Operation reduces, gathers;
  reduces.count = 16;
  gathers.count = 16;
  gathers.collective = Collective::all_gather;
  OperationRun first(session, group, reduces), second(session, group, gathers);
  first.queue_upload(streams[0]);
  second.queue_upload(streams[1]);
  succeed(hcclGroupStart());
  if (group.rank == 0) succeed(messages.send(1, 10, hcclInt32, 1, streams[1]));
  if (group.rank == 1) succeed(messages.receive(0, 10, hcclInt32, 1, streams[0]));
  succeed(first.queue_collective(streams[0]));
  succeed(second.queue_collective(streams[1]));
  succeed(hcclGroupEnd());
  first.queue_download(streams[0]);
  second.queue_download(streams[1]);
  synchronize(streams);
  messages.verify(streams[0]);
  first.verify();
  second.verify();
}

// Ranks must be able to use two communicators on one stream within a group, each rank in a
// different order.
RANK_TEST(Groups, OnTwoCommunicatorsDoNotDeadlock, 2) {
  const std::array groups{group, session.join_all(1)};
  std::array<Messages, 2> messages{Messages(session, groups[0]), Messages(session, groups[1])};
  const auto there = static_cast<std::size_t>(world.rank);
  const std::size_t back = 1 - there;
  succeed(hcclGroupStart());
  succeed(messages[there].send(1 - world.rank, 300'000, hcclInt32, 1, stream));
  succeed(messages[back].receive(1 - world.rank, 300'000, hcclInt32, 1, stream));
  succeed(hcclGroupEnd());
  succeed(synStreamSynchronize(stream));
  for (Messages& of_one : messages) of_one.verify(stream);
}

// Groups must nest, and a group must be able to mix collectives and messages on two streams. A
// group applies only to the thread that started it.
RANK_TEST(Groups, MixCollectivesAndMessages, 3) {
  const std::array streams{stream, session.make_stream()};
  Messages messages(session, group);
  const Operation operation{.count = 5000};
  OperationRun first(session, group, operation), second(session, group, operation);
  first.queue_upload(streams[0]);
  second.queue_upload(streams[1]);
  succeed(hcclGroupStart());
  succeed(hcclGroupStart());
  succeed(messages.send(next_in(group), 9000, hcclInt64, 1, streams[0]));
  succeed(first.queue_collective(streams[0]));
  succeed(hcclGroupEnd());
  succeed(messages.receive(previous_in(group), 9000, hcclInt64, 1, streams[0]));
  succeed(second.queue_collective(streams[1]));
  std::thread([&] {
    // This thread has not started a group.
    expect_code(hcclGroupEnd(), hcclInvalidUsage);
  }).join();
  succeed(hcclGroupEnd());
  first.queue_download(streams[0]);
  second.queue_download(streams[1]);
  synchronize(streams);
  messages.verify(streams[0]);
  first.verify();
  second.verify();
}

// Misuse must return the codes of Gaudi's library and must not affect later calls.
RANK_TEST(Groups, RefuseMisuse, 2) {
  const DeviceMemory memory(session.device(), 4096);
  void* buffer = memory.pointer();
  const auto expect = [](hcclResult_t got, hcclResult_t wanted, const std::string& part) {
    expect_code(got, wanted, part);
  };
  expect(hcclGroupEnd(), hcclInvalidUsage, "without hcclGroupStart");
  succeed(hcclGroupStart());
  succeed(hcclGroupEnd());
  expect(hcclSend(buffer, 4, hcclFloat32, 2, group.handle, stream), hcclInvalidArgument,
         "peer is 2");
  expect(hcclRecv(buffer, 4, hcclFloat32, -1, group.handle, stream), hcclInvalidArgument,
         "peer is");
  expect(hcclSend(buffer, 4000, hcclFloat32, 1, group.handle, stream), hcclInvalidArgument,
         "sendbuff");
  expect(hcclSend(buffer, 4, hcclFloat32, group.rank, group.handle, stream), hcclInternalError,
         "to itself");
  // Within a group, the failing call itself returns its error and leaves the group open.
  succeed(hcclGroupStart());
  expect(hcclRecv(buffer, 4, hcclNumTypes, 0, group.handle, stream), hcclInvalidArgument, "type");
  succeed(hcclGroupEnd());
  succeed(hcclGroupStart());
  for (int call = 0; call < 512; ++call) {
    succeed(hcclSend(buffer, 1, hcclInt8, group.rank, group.handle, stream));
    succeed(hcclRecv(buffer, 1, hcclInt8, group.rank, group.handle, stream));
  }
  expect(hcclSend(buffer, 1, hcclInt8, 0, group.handle, stream), hcclInvalidUsage, "1024");
  succeed(hcclGroupEnd());
  succeed(synStreamSynchronize(stream));
  OperationRun run(session, group, {});
  succeed(run.queue(stream));
  succeed(synStreamSynchronize(stream));
}

// Grouped calls must run even if another thread destroys their communicator before the group ends.
// The group then holds the last reference.
RANK_TEST(Groups, OutliveTheirCommunicator, 1) {
  const DeviceMemory from(session.device(), 4096);
  const DeviceMemory to(session.device(), 4096);
  for (int round = 0; round < 50; ++round) {
    hcclUniqueId id;
    hcclComm_t alone{};
    succeed(hcclGetUniqueId(&id));
    succeed(hcclCommInitRank(&alone, 1, id, 0));
    const std::vector sent(4096, static_cast<std::byte>(round));
    std::vector<std::byte> got(4096);
    upload(stream, sent, from.address());
    succeed(hcclGroupStart());
    succeed(hcclSend(from.pointer(), 4096, hcclInt8, 0, alone, stream));
    succeed(hcclRecv(to.pointer(), 4096, hcclInt8, 0, alone, stream));
    std::thread([&] { succeed(hcclCommDestroy(alone)); }).join();
    succeed(hcclGroupEnd());
    download(stream, to.address(), got);
    succeed(synStreamSynchronize(stream));
    require(got == sent, "the queued calls run");
  }
}

// Returns a rank function that calls hcclCommDestroy within a group. The call must fail for a
// communicator with grouped calls (a collective or a message), and must succeed for a communicator
// without grouped calls.
RankFunction destroyed_in_its_own_group(bool with_collective) {
  return in_session([=](RANK_PARAMETERS) {
    const Group idle = session.join_all(1);
    session.forget_communicators();
    std::vector<float> buffer(1'000, 1.0F);
    succeed(hcclGroupStart());
    if (with_collective) {
      succeed(hcclAllReduce(buffer.data(), buffer.data(), buffer.size(), hcclFloat32, hcclSum,
                            group.handle, stream));
    } else {
      succeed(world.rank == 0 ? hcclSend(buffer.data(), 10, hcclFloat32, 1, group.handle, stream)
                              : hcclRecv(buffer.data(), 10, hcclFloat32, 0, group.handle, stream));
    }
    require_equal(hcclCommDestroy(group.handle), hcclInvalidUsage,
                  "destroying a communicator in use");
    require(contains(last_hccl_message(), "hcclGroupEnd"), last_hccl_message());
    succeed(hcclCommDestroy(idle.handle));
    succeed(hcclGroupEnd());
    succeed(synStreamSynchronize(stream));
    const float result = with_collective ? static_cast<float>(world.size) : 1.0F;
    require(buffer == std::vector<float>(buffer.size(), result), "the group's calls run");
    succeed(hcclCommDestroy(group.handle));
  });
}

TEST(Groups, RefuseToDestroyACommunicatorWithGroupedCalls) {
  EXPECT_EQ(failures(run_ranks(2, destroyed_in_its_own_group(true))), "");
  EXPECT_EQ(failures(run_ranks(2, destroyed_in_its_own_group(false))), "");
}

// Calls on a destroyed stream must be refused at the group's end and must not count as operations
// on either rank.
RANK_TEST(Groups, RefuseADestroyedStream, 2) {
  const int peer = 1 - group.rank;
  const DeviceMemory from(session.device(), 4096);
  const DeviceMemory to(session.device(), 4096);
  const auto call = [&](synStreamHandle on) {
    succeed(hcclGroupStart());
    succeed(hcclSend(from.pointer(), 4096, hcclInt8, peer, group.handle, on));
    succeed(hcclRecv(to.pointer(), 4096, hcclInt8, peer, group.handle, on));
  };
  for (int round = 0; round < 20; ++round) {
    synStreamHandle gone = nullptr;
    succeed(synStreamCreateGeneric(&gone, session.device(), 0));
    call(gone);
    const bool with_collective = round % 2 != 0;
    if (with_collective) {
      succeed(hcclAllReduce(to.pointer(), to.pointer(), 9, hcclInt32, hcclSum, group.handle, gone));
    }
    succeed(synStreamDestroy(gone));
    expect_code(hcclGroupEnd(), hcclInvalidArgument);
    const std::vector sent(4096, static_cast<std::byte>(round + 100 * group.rank));
    const std::vector expected(4096, static_cast<std::byte>(round + 100 * peer));
    std::vector<std::byte> got(4096);
    upload(stream, sent, from.address());
    call(stream);
    succeed(hcclGroupEnd());
    download(stream, to.address(), got);
    succeed(synStreamSynchronize(stream));
    require(got == expected, "the next message is the first one");
  }
}

// A grouped call that runs out of memory must queue nothing and must not count as an operation.
RANK_TEST(Groups, LoseNoMessageWhenMemoryRunsOut, 3,
          RankOptions{.environment = {{"HCCL_DEVICE_MEMORY", "1M"}, {"HCCL_TIMEOUT", "20"}}}) {
  std::vector<std::byte> from(4096), to(4096);
  const DeviceMemory used(session.device(), 4096);
  void* const buffer = used.pointer();
  const int last = group.size() - 1;
  if (group.rank == 0) {
    std::uint64_t free_bytes = 0;
    std::uint64_t total = 0;
    succeed(synDeviceGetMemoryInfo(session.device(), &free_bytes, &total));
    const DeviceMemory rest(session.device(), free_bytes);
    succeed(hcclGroupStart());
    succeed(hcclSend(buffer, 16, hcclInt8, last, group.handle, stream));
    expect_code(hcclSend(from.data(), 4096, hcclInt8, 0, group.handle, stream), hcclOutOfMemory);
    succeed(hcclGroupEnd());
  }
  if (group.rank == last) succeed(hcclRecv(buffer, 16, hcclInt8, 0, group.handle, stream));
  for (int call = 0; call < 2; ++call) {
    if (group.rank == 0) succeed(hcclSend(buffer, 16, hcclInt8, last, group.handle, stream));
    if (group.rank == last) succeed(hcclRecv(buffer, 16, hcclInt8, 0, group.handle, stream));
  }
  succeed(synStreamSynchronize(stream));
}

}  // namespace
}  // namespace hccl::test
