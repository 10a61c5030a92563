// SPDX-License-Identifier: Apache-2.0
// Tests sends and receives: many sizes and all types, orders that would deadlock outside a group,
// many messages between two ranks, and messages from a rank to itself.
#include "elements.h"
#include "messages.h"
#include "operation.h"
#include "rank_test.h"

#include <chrono>
#include <random>
#include <thread>

#include <gtest/gtest.h>

namespace hccl::test {
namespace {

constexpr std::array<std::size_t, 11> kMessageCounts{0,    1,    3,    48,     49,     255,
                                                     1024, 1025, 4099, 65'537, 300'001};

constexpr std::array kPlacements{Placement::device, Placement::host, Placement::view,
                                 Placement::mixed};

int next_of(const Group& group) { return (group.rank + 1) % group.size(); }
int previous_of(const Group& group) { return (group.rank + group.size() - 1) % group.size(); }

// Sends to the next rank and receives from the previous one, in one group.
RANK_BODY(ring) {
  std::uint64_t tag = 0;
  for (const hcclDataType_t type : kAllTypes) {
    for (const std::size_t count : kMessageCounts) {
      Messages messages(session, group, kPlacements[++tag % 3]);
      succeed(hcclGroupStart());
      succeed(messages.send(next_of(group), count, type, tag, stream));
      succeed(messages.receive(previous_of(group), count, type, tag, stream));
      succeed(hcclGroupEnd());
      succeed(synStreamSynchronize(stream));
      messages.verify(stream);
    }
  }
}

class MessageRing : public testing::TestWithParam<int> {};

TEST_P(MessageRing, DeliversEveryMessage) {
  EXPECT_EQ(failures(run_ranks(GetParam(), in_session(ring))), "");
}

TEST_P(MessageRing, DeliversEveryMessageBetweenThreads) {
  EXPECT_EQ(failures(run_ranks_as_threads(GetParam(), in_session(ring))), "");
}

// One rank neither lets the other ranks read its memory nor reads theirs.
TEST(PointToPoint, DeliversEveryMessageIfOneRankDisablesCrossMemoryAttach) {
  const RankFunction exchange = in_session(ring, [](World& world) {
    if (world.rank == 1) setenv("HCCL_CMA_DISABLE", "1", 1);
  });
  EXPECT_EQ(failures(run_ranks(3, exchange)), "");
}

INSTANTIATE_TEST_SUITE_P(Ring, MessageRing, testing::Values(2, 3, 5, 8),
                         testing::PrintToStringParamName());

// Without groups, two ranks must be able to send to each other in turn.
RANK_TEST(PointToPoint, DeliversMessagesAndReplies, 2) {
  Messages messages(session, group, Placement::mixed);
  const int peer = 1 - group.rank;
  for (std::uint64_t tag = 0; tag < 200; ++tag) {
    const std::size_t count = tag % 10 == 0 ? 50'000 : tag;
    const bool sends = (tag + static_cast<std::uint64_t>(group.rank)) % 2 == 0;
    succeed(sends ? messages.send(peer, count, hcclFloat32, tag, stream)
                  : messages.receive(peer, count, hcclFloat32, tag, stream));
    if (tag % 3 == 0) succeed(synStreamSynchronize(stream));
  }
  succeed(synStreamSynchronize(stream));
  messages.verify(stream);
}

// Returns the number of elements of message `index` between two ranks.
std::size_t uneven(std::uint64_t index, int from, int to) {
  return (index * 977 + static_cast<std::size_t>(from * 131 + to * 17)) % 3000;
}

// A group must be able to hold more messages than a mailbox has entries. The messages have
// different sizes and go from each rank to all ranks, including itself.
RANK_TEST(PointToPoint, DeliversManyMessagesBetweenAllRanks, std::vector{4, 1}, std::vector{3}) {
  for (std::uint64_t round = 0; round < 3; ++round) {
    Messages messages(session, group, kPlacements[round]);
    succeed(hcclGroupStart());
    for (int call = 0; call < 25 * group.size(); ++call) {
      const int peer = call % group.size();
      const auto index = static_cast<std::uint64_t>(call / group.size());
      const std::uint64_t tag = round * 100 + index;
      succeed(messages.send(peer, uneven(index, group.rank, peer), hcclBfloat16, tag, stream));
      succeed(messages.receive(peer, uneven(index, peer, group.rank), hcclBfloat16, tag, stream));
    }
    succeed(hcclGroupEnd());
    succeed(synStreamSynchronize(stream));
    messages.verify(stream);
  }
}

// Returns a rank function that exchanges random messages between collectives, on two streams and
// partly in groups. All ranks draw the same program.
RankFunction random_messages(unsigned long long seed) {
  return in_session([seed](RANK_PARAMETERS) {
    const std::array streams{stream, session.make_stream()};
    std::mt19937_64 random(seed);
    Messages messages(session, group, kPlacements[seed % 3]);
    std::deque<OperationRun> collectives;
    for (std::uint64_t tag = 0; tag < 300; ++tag) {
      synStreamHandle chosen = streams[random() % 2];
      const auto from = static_cast<int>(random() % static_cast<unsigned>(world.size));
      const auto to = static_cast<int>(random() % static_cast<unsigned>(world.size));
      const std::size_t count = kMessageCounts[random() % 8];
      if (random() % 8 == 0) {
        const Operation operation{
            .count = count, .seed = tag, .placement = kPlacements[random() % 3]};
        succeed(collectives.emplace_back(session, group, operation).queue(chosen));
      }
      const bool grouped = from == to || random() % 2 == 0;
      if (grouped) succeed(hcclGroupStart());
      if (from == group.rank) succeed(messages.send(to, count, hcclFloat64, tag, chosen));
      if (to == group.rank) succeed(messages.receive(from, count, hcclFloat64, tag, chosen));
      if (grouped) succeed(hcclGroupEnd());
      if (random() % 16 == 0) succeed(synStreamSynchronize(chosen));
    }
    synchronize(streams);
    messages.verify(streams[0]);
    for (const OperationRun& run : collectives) run.verify();
  });
}

TEST(PointToPoint, RandomProgramsDeliverWhatWasSent) {
  const unsigned long long seed = test_seed();
  for (const int size : {2, 3, 6}) {
    EXPECT_EQ(failures(run_ranks(size, random_messages(seed))), "") << "HCCL_TEST_SEED=" << seed;
  }
}

// Returns a rank function that queues groups, each with a send and a receive. A group may send or
// overwrite data that an earlier group has received.
RankFunction relays(unsigned long long seed) {
  return in_session([seed](RANK_PARAMETERS) {
    constexpr std::size_t kBuffers = 4;
    constexpr std::size_t kLength = 3000;
    using Bytes = std::vector<std::byte>;
    std::vector<std::vector<Bytes>> model(static_cast<std::size_t>(world.size));
    for (std::size_t rank = 0; rank < model.size(); ++rank) {
      model[rank].assign(kBuffers, Bytes(kLength));
      for (std::size_t at = 0; at < kBuffers * kLength; ++at)
        model[rank][at / kLength][at % kLength] = static_cast<std::byte>(rank * 31 + at * 7);
    }
    const auto self = static_cast<std::size_t>(world.rank);
    std::deque<DeviceMemory> buffers;
    for (const Bytes& bytes : model[self]) {
      buffers.emplace_back(session.device(), kLength);
      upload(stream, bytes, buffers.back().address());
    }
    succeed(synStreamSynchronize(stream));
    std::mt19937_64 random(seed);
    for (int step = 0; step < 400; ++step) {
      const std::size_t from = random() % kBuffers;
      const std::size_t to = (from + 1 + random() % (kBuffers - 1)) % kBuffers;
      const std::size_t count = 1 + random() % kLength;
      succeed(hcclGroupStart());
      succeed(hcclSend(device_pointer(buffers[from].address()), count, hcclInt8, next_of(group),
                       group.handle, stream));
      succeed(hcclRecv(device_pointer(buffers[to].address()), count, hcclInt8, previous_of(group),
                       group.handle, stream));
      succeed(hcclGroupEnd());
      const auto before = model;
      for (std::size_t rank = 0; rank < model.size(); ++rank) {
        const Bytes& sent = before[(rank + model.size() - 1) % model.size()][from];
        std::copy_n(sent.begin(), count, model[rank][to].begin());
      }
      if (random() % 64 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
    for (std::size_t buffer = 0; buffer < kBuffers; ++buffer) {
      Bytes got(kLength);
      download(stream, buffers[buffer].address(), got);
      succeed(synStreamSynchronize(stream));
      require(got == model[self][buffer], join("buffer ", buffer, " of rank ", world.rank));
    }
  });
}

TEST(PointToPoint, QueuedRelaysMatchRelaysRunOneByOne) {
  const unsigned long long seed = test_seed();
  for (const int size : {2, 3, 8}) {
    EXPECT_EQ(failures(run_ranks(size, relays(seed))), "") << "HCCL_TEST_SEED=" << seed;
  }
  EXPECT_EQ(failures(run_ranks_as_threads(4, relays(seed))), "") << "HCCL_TEST_SEED=" << seed;
}

}  // namespace
}  // namespace hccl::test
