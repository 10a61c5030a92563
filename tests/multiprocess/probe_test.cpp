// SPDX-License-Identifier: Apache-2.0
// Tests hcclEmulationProbe, which reports a message's sender and size. A receive from that sender
// must get the reported message.
#include "messages.h"
#include "rank_test.h"

#include <chrono>
#include <map>
#include <thread>

#include <gtest/gtest.h>
#include <hccl_emulation.h>

namespace hccl::test {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kLong = 60'000;
constexpr std::array<std::size_t, 5> kProbedCounts{0, 3, 100, 5000, 70'001};

struct Offered {
  hcclResult_t result = hcclSuccess;
  int source = -1;
  std::uint64_t bytes = 0;
};

Offered probe(const Group& group, std::uint64_t timeout_ms) {
  Offered offered;
  offered.result = hcclEmulationProbe(group.handle, timeout_ms, &offered.source, &offered.bytes);
  return offered;
}

void require_busy(const Offered& offered) {
  expect_code(offered.result, hcclBusy);
  require_equal(offered.source, -1, "the source");
}

// Returns a rank function in which all other ranks send rank 0 messages of many sizes. Rank 0
// receives them in the order in which its probes report them.
RankFunction collect(int messages_each) {
  return in_session([=](RANK_PARAMETERS) {
    Messages messages(session, group, Placement::device);
    const auto count_of = [](int index) {
      return kProbedCounts[static_cast<std::size_t>(index) % 5];
    };
    if (group.rank != 0) {
      for (int index = 0; index < messages_each; ++index)
        succeed(messages.send(0, count_of(index + group.rank), hcclInt32,
                              static_cast<std::uint64_t>(index), stream));
    } else {
      std::map<int, int> received;
      for (int left = messages_each * (world.size - 1); left > 0; --left) {
        const Offered offered = probe(group, kLong);
        succeed(offered.result);
        int& index = received[offered.source];
        const std::size_t count = count_of(index + offered.source);
        require_equal(offered.bytes, 4 * count, join("bytes from rank ", offered.source));
        // A second probe must also report a message, possibly from another rank.
        succeed(probe(group, 0).result);
        succeed(messages.receive(offered.source, count, hcclInt32,
                                 static_cast<std::uint64_t>(index), stream));
        ++index;
        if (left % 3 == 0) succeed(synStreamSynchronize(stream));
      }
    }
    succeed(synStreamSynchronize(stream));
    messages.verify(stream);
    require_busy(probe(group, 0));
  });
}

TEST(Probe, ReportsEveryMessage) {
  for (const int ranks : {2, 4}) {
    EXPECT_EQ(failures(run_ranks(ranks, collect(30))), "");
    EXPECT_EQ(failures(run_ranks_as_threads(ranks, collect(30))), "");
  }
}

// If every sender has a pending message, one round of probes must report each sender once.
RANK_TEST(Probe, ServesSendersInTurn, 4) {
  constexpr int kEach = 5;
  Messages messages(session, group);
  if (group.rank != 0) {
    for (std::uint64_t tag = 0; tag < kEach; ++tag)
      succeed(messages.send(0, 10, hcclInt8, tag, stream));
  } else {
    // Wait until every sender has been reported, because a later sender could change the order.
    std::map<int, int> seen;
    while (seen.size() + 1 < static_cast<std::size_t>(world.size)) {
      const Offered offered = probe(group, kLong);
      succeed(offered.result);
      ++seen[offered.source];
    }
    std::map<int, std::uint64_t> received;
    for (int round = 1; round <= kEach; ++round) {
      for (int sender = 1; sender < world.size; ++sender) {
        const Offered offered = probe(group, kLong);
        succeed(offered.result);
        succeed(messages.receive(offered.source, 10, hcclInt8, received[offered.source]++, stream));
        succeed(synStreamSynchronize(stream));
        if (round != 1) continue;
        require_equal(received[offered.source], std::uint64_t{1}, "messages in the first round");
      }
    }
  }
  succeed(synStreamSynchronize(stream));
  messages.verify(stream);
}

// A probe must time out if no rank sends, and must wake up for a message, while a receive from
// another rank is in progress on another stream.
RANK_TEST(Probe, WaitsForAMessage, std::vector{3}, std::vector{3}) {
  const std::array streams{stream, session.make_stream()};
  Messages messages(session, group);
  if (group.rank == 0) {
    require_busy(probe(group, 0));
    require_busy(probe(group, 20));
    world.board->counter(1) = 1;
    succeed(messages.receive(1, 50, hcclInt8, 1, streams[1]));
    const Offered offered = probe(group, kLong);
    succeed(offered.result);
    require_equal(offered.source, 2, "the source");
    require_equal(offered.bytes, std::uint64_t{200}, "the bytes");
    succeed(messages.receive(2, 50, hcclFloat32, 2, streams[0]));
    succeed(synStreamSynchronize(streams[0]));
    require_busy(probe(group, 5));
    world.board->counter(1) = 2;
    succeed(synStreamSynchronize(streams[1]));
  } else if (group.rank == 1) {
    world.board->await(1, 2);
    succeed(messages.send(0, 50, hcclInt8, 1, streams[0]));
  } else {
    world.board->await(1, 1);
    std::this_thread::sleep_for(
        milliseconds(scaled(300)));  // long enough that the probe is probably asleep
    succeed(messages.send(0, 50, hcclFloat32, 2, streams[0]));
  }
  synchronize(streams);
  messages.verify(streams[0]);
}

// While a receive for rank 1's first message is posted, a probe must report the second message,
// whether the receive completes before or after the probe starts.
RANK_TEST(Probe, FindsAMessageBehindAPostedReceive, std::vector{2}, std::vector{2}) {
  Messages messages(session, group);
  for (std::uint64_t round = 0; round < 20; ++round) {
    const std::uint64_t tag = 2 * round;
    const int turn = static_cast<int>(round) + 1;
    if (group.rank == 1) {
      world.board->await(1, turn);
      std::this_thread::sleep_for(milliseconds(round % 5));
      succeed(messages.send(0, 10, hcclInt8, tag, stream));
      succeed(messages.send(0, 20, hcclInt8, tag + 1, stream));
    } else {
      succeed(messages.receive(1, 10, hcclInt8, tag, stream));
      world.board->counter(1) = turn;
      const Offered offered = probe(group, kLong);
      succeed(offered.result);
      require_equal(offered.source, 1, "the source");
      require_equal(offered.bytes, std::uint64_t{20}, "the bytes");
      succeed(messages.receive(1, 20, hcclInt8, tag + 1, stream));
    }
    succeed(synStreamSynchronize(stream));
  }
  messages.verify(stream);
}

// Continuous probes on one thread and receives on another thread must not disturb each other.
RANK_TEST(Probe, DoesNotDisturbReceives, 3) {
  Messages messages(session, group);
  const int next = (group.rank + 1) % world.size;
  const int before = (group.rank + world.size - 1) % world.size;
  std::atomic<bool> done{false};
  std::atomic<int> failed{0};
  std::thread prober([&] {
    while (!done) {
      const hcclResult_t result = probe(group, 30).result;
      if (result != hcclSuccess && result != hcclBusy) ++failed;
    }
  });
  for (std::uint64_t tag = 0; tag < 200; ++tag) {
    succeed(hcclGroupStart());
    succeed(messages.send(next, kProbedCounts[tag % 4], hcclInt32, tag, stream));
    succeed(messages.receive(before, kProbedCounts[tag % 4], hcclInt32, tag, stream));
    succeed(hcclGroupEnd());
    if (tag % 5 == 0) succeed(synStreamSynchronize(stream));
  }
  succeed(synStreamSynchronize(stream));
  done = true;
  prober.join();
  require_equal(failed.load(), 0, "probes that failed");
  messages.verify(stream);
}

// Returns a rank function in which rank 1 aborts or dies while the other ranks probe. The probes
// must fail with an error that names rank 1.
RankFunction end_of_the_communicator(bool dies) {
  return in_session([=](RANK_PARAMETERS) {
    if (group.rank == 1) {
      std::this_thread::sleep_for(milliseconds(100));
      if (dies) std::_Exit(0);
      succeed(hcclCommAbort(group.handle));
      session.forget_communicators();
      return;
    }
    const Offered offered = probe(group, kLong);
    expect_code(offered.result, hcclSystemError);
    require(names_rank(last_hccl_message(), 1), last_hccl_message());
  });
}

TEST(Probe, ReturnsWhenTheCommunicatorEnds) {
  EXPECT_EQ(failures(run_ranks(3, end_of_the_communicator(false))), "");
  const RankOptions options{.victim = 1};
  EXPECT_EQ(failures(run_ranks(3, end_of_the_communicator(true), options), 1), "");
}

// An abort on the same rank must unblock a waiting probe.
RANK_TEST(Probe, ReturnsOnAbort, 2) {
  hcclResult_t result = hcclSuccess;
  std::thread prober([&] { result = probe(group, kLong).result; });
  std::this_thread::sleep_for(milliseconds(50));
  succeed(hcclCommAbort(group.handle));
  prober.join();
  require(result != hcclSuccess && result != hcclBusy, "the probe did not fail");
  session.forget_communicators();
}

RANK_TEST(Probe, RefusesInvalidArguments, std::vector{1, 2}) {
  int source = -1;
  expect_code(hcclEmulationProbe(group.handle, 0, nullptr, nullptr), hcclInvalidArgument);
  expect_code(hcclEmulationProbe(&session, 0, &source, nullptr), hcclInvalidArgument);
  expect_code(hcclEmulationProbe(group.handle, world.size == 1 ? kLong : 0, &source, nullptr),
              hcclBusy);
}

}  // namespace
}  // namespace hccl::test
