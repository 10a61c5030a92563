// SPDX-License-Identifier: Apache-2.0
// Tests sends and receives whose peer passes another count or type, calls a collective instead,
// calls late or never, leaves, aborts or dies.
#include "faults.h"
#include "messages.h"
#include "rank_test.h"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace hccl::test {
namespace {

void expect_sync_fails(synStreamHandle stream) {
  expect_code(synStreamSynchronize(stream), synFailHccl);
}

struct Side {
  std::size_t count;
  hcclDataType_t type;
};

// Returns a rank function in which `sender` sends `sent` to rank 0, which expects `expected`. The
// other ranks wait in a receive.
RankFunction unequal(int sender, Side sent, Side expected, bool grouped) {
  return in_session([=](RANK_PARAMETERS) {
    Messages messages(session, group);
    const bool concerned = world.rank == sender || world.rank == 0;
    if (!concerned) succeed(messages.receive(0, 100, hcclFloat32, 2, stream));
    world.board->barrier(0, world.size);
    if (grouped) succeed(hcclGroupStart());
    if (world.rank == sender) succeed(messages.send(0, sent.count, sent.type, 1, stream));
    if (world.rank == 0)
      succeed(messages.receive(sender, expected.count, expected.type, 1, stream));
    if (grouped) succeed(hcclGroupEnd());
    expect_sync_fails(stream);
    messages.verify_untouched(stream);
    expect_failed(group, hcclInvalidUsage, sender);
    const std::string message = async_message(group.handle);
    for (const std::string& part : {join("send(", sent.count), join("recv(", expected.count)})
      require(contains(message, part), message);
    expect_usable_remains(session, group, stream, hcclInvalidUsage);
  });
}

TEST(MessageMismatch, UnequalCountsFailBothSides) {
  EXPECT_EQ(failures(run_ranks(2, unequal(1, {100, hcclFloat32}, {101, hcclFloat32}, false))), "");
  EXPECT_EQ(failures(run_ranks(8, unequal(3, {5000, hcclInt8}, {50'000, hcclInt8}, true))), "");
  EXPECT_EQ(failures(run_ranks(2, unequal(1, {0, hcclInt8}, {1, hcclInt8}, true))), "");
}

TEST(MessageMismatch, UnequalTypesFailBothSides) {
  EXPECT_EQ(failures(run_ranks(2, unequal(1, {10, hcclFloat32}, {10, hcclInt32}, true))), "");
  EXPECT_EQ(failures(run_ranks_as_threads(
                3, unequal(2, {70'000, hcclFloat64}, {70'000, hcclInt64}, false))),
            "");
}

enum class Instead { sends, receives, sends_before_the_same };

// Returns a rank function in which rank `odd` sends to rank 0 or receives from it, while the other
// ranks call an all-reduce. With sends_before_the_same, `odd` calls the all-reduce after its send.
RankFunction against_a_collective(int odd, Instead instead) {
  return in_session([=](RANK_PARAMETERS) {
    Messages messages(session, group);
    OperationRun run(session, group, all_reduce_of(1000));
    if (world.rank == odd) {
      succeed(instead == Instead::receives ? messages.receive(0, 30, hcclInt64, 1, stream)
                                           : messages.send(0, 30, hcclInt64, 1, stream));
    }
    if (world.rank != odd || instead == Instead::sends_before_the_same) succeed(run.queue(stream));
    if (world.rank == 0 && instead == Instead::sends_before_the_same)
      succeed(messages.receive(odd, 30, hcclInt64, 1, stream));
    expect_sync_fails(stream);
    expect_failed(group, hcclInvalidUsage, odd);
    const std::string message = async_message(group.handle);
    require(contains(message, "all_reduce(1000, float, sum)"), message);
    require(contains(message, instead == Instead::receives ? "recv(30, int64)" : "send(30, int64)"),
            message);
    messages.verify_untouched(stream);
    if (world.rank != odd) run.verify_untouched();
    expect_usable_remains(session, group, stream, hcclInvalidUsage);
  });
}

class MessageAgainstCollective : public testing::TestWithParam<Instead> {};

TEST_P(MessageAgainstCollective, FailsTwoRanks) {
  EXPECT_EQ(failures(run_ranks(2, against_a_collective(1, GetParam()))), "");
}

TEST_P(MessageAgainstCollective, FailsEightRanks) {
  EXPECT_EQ(failures(run_ranks(8, against_a_collective(3, GetParam()))), "");
}

INSTANTIATE_TEST_SUITE_P(Calls, MessageAgainstCollective,
                         testing::Values(Instead::sends, Instead::receives,
                                         Instead::sends_before_the_same));

// Messages, an all-reduce, and two streams to run them on.
struct TwoStreams {
  TwoStreams(Session& session, const Group& group, synStreamHandle stream)
      : first(stream),
        second(session.make_stream()),
        messages(session, group),
        run(session, group, all_reduce_of(1000)) {}

  const synStreamHandle first;
  const synStreamHandle second;
  Messages messages;
  OperationRun run;
};

// While a collective runs on one stream, a rank may receive on another stream, even after a delay.
RANK_TEST(PointToPoint, MayCrossACollectiveOnAnotherStream, 2) {
  TwoStreams all(session, group, stream);
  auto& [first, second, messages, run] = all;
  if (world.rank == 0) {
    succeed(run.queue(first));
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    succeed(messages.receive(1, 5000, hcclFloat32, 1, second));
    succeed(synStreamSynchronize(second));
  } else {
    succeed(messages.send(0, 5000, hcclFloat32, 1, first));
    succeed(run.queue(first));
  }
  succeed(synStreamSynchronize(first));
  messages.verify(first);
  run.verify();
}

// Rank 0's receive from rank 1 is queued behind another receive, whose message arrives after 4.5 s.
// The check for mismatches must not report rank 1's send as unmatched.
RANK_TEST(PointToPoint, CompletesBehindALateMessageOfAnotherStream, 3) {
  TwoStreams all(session, group, stream);
  auto& [first, second, messages, run] = all;
  const std::chrono::milliseconds late(4500);
  if (world.rank == 0) {
    succeed(messages.receive(2, 8, hcclInt8, 2, second));
    succeed(messages.receive(1, 5000, hcclFloat32, 1, second));
    succeed(run.queue(first));
  } else if (world.rank == 1) {
    succeed(messages.send(0, 5000, hcclFloat32, 1, first));
    succeed(run.queue(first));
  } else {
    succeed(run.queue(first));
    std::this_thread::sleep_for(late);
    succeed(messages.send(0, 8, hcclInt8, 2, second));
  }
  succeed(synStreamSynchronize(first));
  succeed(synStreamSynchronize(second));
  messages.verify(second);
  run.verify();
}

// A send must wait for a rank that is in a collective on another stream, because the sender may be
// about to call that collective.
RANK_TEST(PointToPoint, WaitsForAPeerThatIsAboutToCall, 2) {
  TwoStreams all(session, group, stream);
  auto& [first, second, messages, run] = all;
  if (world.rank == 0) {
    succeed(messages.send(1, 16, hcclInt32, 1, second));
    std::this_thread::sleep_for(std::chrono::milliseconds(2500));
    succeed(run.queue(first));
    succeed(synStreamSynchronize(first));
  } else {
    succeed(run.queue(first));
    succeed(synStreamSynchronize(first));
    succeed(messages.receive(0, 16, hcclInt32, 1, second));
  }
  succeed(synStreamSynchronize(second));
  messages.verify(second);
  run.verify();
}

// A receive whose message is never sent must fail at the time limit.
RANK_TEST(PointToPoint, TimesOutAndNamesThePeer, 2, with_environment({{"HCCL_TIMEOUT", "1.5"}})) {
  Messages messages(session, group);
  if (world.rank == 0) {
    succeed(messages.receive(1, 100, hcclFloat32, 1, stream));
    expect_sync_fails(stream);
    messages.verify_untouched(stream);
  } else {
    await_async_error(group);
  }
  expect_failed(group, hcclSystemError, 1);
  expect_usable_remains(session, group, stream, hcclSystemError);
}

// Ranks 0 and 2 wait in an all-reduce for rank 1, which waits for a late message from rank 2.
RANK_BODY(waits_in_a_receive) {
  TwoStreams all(session, group, stream);
  auto& [first, second, messages, run] = all;
  if (world.rank == 1) succeed(messages.receive(2, 77, hcclInt8, 1, first));
  succeed(run.queue(first));
  if (world.rank == 2) {
    std::this_thread::sleep_for(std::chrono::seconds(sanitized() ? 9 : 3));
    succeed(messages.send(1, 77, hcclInt8, 1, second));
    succeed(synStreamSynchronize(second));
  }
  succeed(synStreamSynchronize(first));
  messages.verify(first);
}

TEST(HangReport, NamesWhatALateRankIsDoing) {
  const auto outcomes =
      run_ranks(3, in_session(waits_in_a_receive), with_environment({{"HCCL_HANG_REPORT", "1.2"}}));
  EXPECT_EQ(failures(outcomes), "");
  const std::string text = outcomes[0].stderr_text;
  EXPECT_TRUE(contains(text, "in recv(77, int8) from rank 2")) << text;
  EXPECT_TRUE(names_rank(text, 1)) << text;
}

// How rank 1 ends while rank 0's send waits for it.
enum class Ending { destroys, dies, aborts };

RankFunction peer_ends(Ending ending) {
  return in_session([ending](RANK_PARAMETERS) {
    Messages messages(session, group);
    if (world.rank == 0) {
      succeed(messages.send(1, 100'000, hcclFloat32, 1, stream));
      world.board->counter(0) = 1;
      expect_sync_fails(stream);
      expect_failed(group, hcclSystemError, 1);
      expect_usable_remains(session, group, stream, hcclSystemError);
      return;
    }
    world.board->await(0, 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (ending == Ending::dies) kill(getpid(), SIGKILL);
    succeed(ending == Ending::destroys ? hcclCommDestroy(group.handle)
                                       : hcclCommAbort(group.handle));
    session.forget_communicators();
  });
}

TEST(PointToPoint, FailsWhenItsPeerEnds) {
  EXPECT_EQ(failures(run_ranks(2, peer_ends(Ending::destroys))), "");
  EXPECT_EQ(failures(run_ranks(2, peer_ends(Ending::aborts))), "");
  const RankOptions options{.victim = 1};
  EXPECT_EQ(failures(run_ranks(2, peer_ends(Ending::dies), options), 1), "");
}

}  // namespace
}  // namespace hccl::test
