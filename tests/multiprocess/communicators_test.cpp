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
void overlapping(World& world) {
  Session session(world);
  const Group all = session.join_all(0);
  const Group reversed = session.join_members(1, {3, 2, 1, 0});
  const bool low = world.rank < 2;
  const Group pair = session.join_members(low ? 2 : 3, low ? std::vector<int>{1, 0}  //
                                                           : std::vector<int>{2, 3});
  const std::vector<const Group*> groups{&all, &reversed, &pair};
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
  succeed(hcclCommSynDevice(all.handle, &device));
  require_equal(count, 2, "ranks of the pair");
  require_equal(rank, 3 - world.rank, "rank in the reversed communicator");
  require_equal(device, static_cast<int>(session.device()), "device");
  session.finish();
}

TEST(Communicators, OverlapInAnyOrderOnStreamsOfTheirOwn) {
  EXPECT_EQ(failures(run_ranks(4, overlapping)), "");
}

TEST(Communicators, OverlapAmongThreads) {
  EXPECT_EQ(failures(run_ranks_as_threads(4, overlapping)), "");
}

// One communicator used on four streams, interleaved.
RANK_BODY(many_streams) {
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

TEST(Communicators, ServeSeveralStreams) {
  EXPECT_EQ(failures(run_ranks(3, in_session(many_streams))), "");
  EXPECT_EQ(failures(run_ranks(8, in_session(many_streams))), "");
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
void by_address(World& world) {
  Session session(world);
  const Group first = session.join_all(0);
  const Group second = session.join_all(1);  // HCCL_COMM_ID is for the first communicator alone
  synStreamHandle stream = session.make_stream();
  for (const Group* group : {&first, &second}) {
    OperationRun run(session, *group, all_reduce_of(4321, 9));
    succeed(run.queue(stream));
    succeed(synStreamSynchronize(stream));
    run.verify();
  }
  session.finish();
}

TEST(Communicators, MeetAtAnAddress) {
  const RankOptions options{.comm_id = true};
  EXPECT_EQ(failures(run_ranks(8, by_address, options)), "");
}

TEST(Communicators, MeetAtAnAddressWhateverTheOrder) {
  const RankOptions options{.comm_id = true};
  const auto late_root = [](World& world) {
    if (world.rank == 0) usleep(400'000);
    if (world.rank == 2) usleep(700'000);
    by_address(world);
  };
  EXPECT_EQ(failures(run_ranks(4, late_root, options)), "");
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
