// SPDX-License-Identifier: Apache-2.0
// Several communicators and streams at once: overlapping members, other orders, and both ways of
// finding each other.
#include "operation.h"
#include "rank_test.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>

#include <gtest/gtest.h>

namespace hccl::test {
namespace {

Operation all_reduce_of(std::size_t count, std::uint64_t seed) {
  return {.count = count, .offset = seed % 5, .seed = seed};
}

// Three communicators over four ranks: all, all the other way round, and pairs that overlap them.
RANK_TEST(Communicators, OverlapInAnyOrderOnStreamsOfTheirOwn, std::vector{4}, std::vector{4}) {
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

// One communicator used on four streams, interleaved.
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

// Communicators come and go on the same device.
void again_and_again(World& world) {
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

TEST(Communicators, ComeAndGo) { EXPECT_EQ(failures(run_ranks(3, again_and_again)), ""); }

// Only rank 0 asks for an id; the others pass zeroes.
RANK_BODY(by_address) {
  const Group second = session.join_all(1);  // HCCL_COMM_ID is for the first communicator alone
  for (const Group* each : {&group, &second})
    run_and_verify(session, *each, stream, all_reduce_of(4321, 9));
}

TEST(Communicators, MeetAtAnAddress) {
  const RankOptions options{.comm_id = true};
  EXPECT_EQ(failures(run_ranks(8, in_session(by_address), options)), "");
}

TEST(Communicators, MeetAtAnAddressWhateverTheOrder) {
  const RankOptions options{.comm_id = true};
  const auto wait = [](const World& world) {
    if (world.rank == 0) usleep(400'000);
    if (world.rank == 2) usleep(700'000);
  };
  EXPECT_EQ(failures(run_ranks(4, in_session(by_address, wait), options)), "");
}

// Receivers that set `length` by hand after shipping only the bytes in use.
void shipped_by_length(World& world) {
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

TEST(Communicators, NeedOnlyTheBytesInUseOfAnId) {
  EXPECT_EQ(failures(run_ranks(3, shipped_by_length)), "");
}

}  // namespace
}  // namespace hccl::test
