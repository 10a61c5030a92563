// SPDX-License-Identifier: Apache-2.0
// Tests the engine with ranks that are threads: results, wrap-around of counters, failures and
// departures.
#include "node/engine.h"

#include "engine_ranks.h"
#include "node/collective_operation.h"
#include "node/lane.h"
#include "node/post.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>

#include <gtest/gtest.h>

namespace hccl::node {
namespace {

using namespace std::chrono_literals;

// Runs `rounds` all-reduces of `count` floats, every second one in place. Checks the results of all
// ranks.
void check_all_reduces(EngineRanks& ranks, std::size_t count, int rounds) {
  std::vector<std::vector<float>> inputs;
  inputs.reserve(static_cast<std::size_t>(ranks.size()));
  for (int rank = 0; rank < ranks.size(); ++rank) {
    inputs.push_back(random_values(count, static_cast<unsigned>(rank) + 1));
  }
  const std::vector<float> expected = sum_in_rank_order(inputs);
  std::atomic<int> wrong{0};
  ranks.run([&](int rank) {
    const auto lane = ranks.make_lane(rank);
    const std::vector<float> poison(count, -1.0F);
    const std::vector<float>& input = inputs[static_cast<std::size_t>(rank)];
    for (int round = 0; round < rounds; ++round) {
      const std::uint64_t send = ranks.upload(rank, input);
      const std::uint64_t recv = round % 2 == 1 ? send : ranks.upload(rank, poison);
      ranks.engine(rank).execute(*lane, all_reduce_call(count, send, recv));
      const std::vector<float> result = ranks.read(rank, recv, count);
      if (!same_bits(result, expected)) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST(Engine, AllReducesOfEverySizeSumInRankOrder) {
  for (const int size : {2, 3, 8}) {
    EngineRanks ranks(size);
    for (const std::size_t count : {1u, 17u, 260u, 261u, 1025u, 40'000u, 300'001u})
      check_all_reduces(ranks, count, 3);
  }
}

// In the first kUsesByShares uses of a large buffer, each rank maps only the parts that it
// computes; later, ranks map the whole buffer. Every use must give the same sums.
void check_reused_buffers(EngineRanks& ranks, std::size_t count, std::uint32_t rounds) {
  std::vector<std::vector<float>> inputs;
  inputs.reserve(static_cast<std::size_t>(ranks.size()));
  for (int rank = 0; rank < ranks.size(); ++rank)
    inputs.push_back(random_values(count, static_cast<unsigned>(rank) + 1));
  const std::vector<float> expected = sum_in_rank_order(inputs);
  const std::vector<float> poison(count, -1.0F);
  std::atomic<int> wrong{0};
  ranks.run([&](int rank) {
    const auto lane = ranks.make_lane(rank);
    const std::vector<float>& input = inputs[static_cast<std::size_t>(rank)];
    const std::uint64_t send = ranks.upload(rank, input);
    const std::uint64_t recv = ranks.upload(rank, poison);
    for (std::uint32_t round = 0; round < rounds; ++round) {
      ranks.write(rank, recv, poison);
      ranks.engine(rank).execute(*lane, all_reduce_call(count, send, recv));
      if (!same_bits(ranks.read(rank, recv, count), expected)) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST(Engine, SumsAreTheSameHoweverOftenBuffersAreUsed) {
  for (const int size : {2, 3, 8}) {
    EngineRanks small(size);
    check_reused_buffers(small, 40'000, 4);
    EngineRanks large(size);
    check_reused_buffers(large, kLargeBufferBytes / sizeof(float) + 17, kUsesByShares + 3);
  }
}

TEST(Engine, TimeoutNamesRankThatDoesNotComputeItsShare) {
  EngineOptions options;
  options.operation_timeout = 200ms;
  EngineRanks ranks(2, 0, options);
  const std::size_t count = kLargeBufferBytes / sizeof(float);
  const CollectiveCall call = all_reduce_call(count, ranks.upload(1, random_values(count, 1)),
                                              ranks.upload(1, random_values(count, 2)));
  const auto lane = ranks.make_lane(1);
  lane->attach();
  CollectiveOperation operation(*lane, call, 1, 2, lane->number());
  post(ranks.segment(1), operation);
  EXPECT_EQ(operation.mapping, Mapping::by_shares);
  const auto lane0 = ranks.make_lane(0);
  const std::uint64_t buffer = ranks.upload(0, random_values(count, 3));
  try {
    ranks.engine(0).execute(*lane0, all_reduce_call(count, buffer, buffer));
    ADD_FAILURE() << "completed without rank 1";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("rank 1"), std::string::npos) << text;
    EXPECT_NE(text.find("has not computed its part"), std::string::npos) << text;
  }
}

// Makes an operation return instead of sleeping while it waits for other ranks.
class Impatient final : public CallLookahead {
 public:
  const CollectiveCall* next() override { return nullptr; }
  bool has_next() const override { return false; }
  WaitBudget wait_budget() const override { return WaitBudget::no_sleep; }
};

// In place, computing a share twice would change the result.
TEST(Engine, SuspendedOperationComputesItsShareOnce) {
  EngineRanks ranks(2);
  const std::size_t count = kLargeBufferBytes / sizeof(float) + 17;
  const std::vector<std::vector<float>> inputs{random_values(count, 1), random_values(count, 2)};
  std::vector<CollectiveCall> calls;
  std::vector<std::unique_ptr<Lane>> lanes;
  for (int rank = 0; rank < 2; ++rank) {
    const std::uint64_t buffer = ranks.upload(rank, inputs[static_cast<std::size_t>(rank)]);
    calls.push_back(all_reduce_call(count, buffer, buffer));
    lanes.push_back(ranks.make_lane(rank));
  }
  lanes[1]->attach();
  CollectiveOperation operation(*lanes[1], calls[1], 1, 2, lanes[1]->number());
  post(ranks.segment(1), operation);
  for (int attempt = 0; attempt < 3; ++attempt) {
    Impatient ahead;
    EXPECT_FALSE(ranks.engine(0).execute(*lanes[0], calls[0], &ahead)) << attempt;
    EXPECT_TRUE(lanes[0]->has_computed_share(0)) << attempt;
  }
  EXPECT_TRUE(ranks.engine(1).execute(*lanes[1], calls[1]));
  EXPECT_TRUE(ranks.engine(0).execute(*lanes[0], calls[0]));
  const std::vector<float> expected = sum_in_rank_order(inputs);
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_TRUE(
        same_bits(ranks.read(rank, calls[static_cast<std::size_t>(rank)].recv, count), expected))
        << rank;
  }
}

TEST(Lane, MapsLargeBuffersBySharesAndSmallOnesOnTheirSecondUse) {
  EngineRanks ranks(2);
  const auto lane = ranks.make_lane(0);
  const device::Placement send{1 << 20, 1};
  const device::Placement recv{2 << 20, 2};
  for (std::uint32_t use = 0; use < kUsesByShares; ++use)
    ASSERT_EQ(lane->use_buffers(send, recv, kLargeBufferBytes), Mapping::by_shares) << use;
  EXPECT_EQ(lane->use_buffers(send, recv, kLargeBufferBytes), Mapping::whole);
  EXPECT_EQ(lane->use_buffers(send, recv, kLargeBufferBytes - 1), Mapping::whole);
  const device::Placement replaced{2 << 20, 3};
  EXPECT_EQ(lane->use_buffers(send, replaced, kLargeBufferBytes - 1), Mapping::unused);
  EXPECT_EQ(lane->use_buffers(send, replaced, kLargeBufferBytes - 1), Mapping::whole);
  EXPECT_EQ(lane->use_buffers(send, replaced, kLargeBufferBytes), Mapping::by_shares);
  EXPECT_EQ(lane->use_buffers(send, replaced, kLargeBufferBytes - 1), Mapping::whole);
}

TEST(Engine, CountersWrap) {
  for (const std::uint32_t first : {0x7ffffff8u, 0xfffffff8u, 0x3ffffff8u}) {
    EngineRanks ranks(3, first);
    check_all_reduces(ranks, 5, 20);
    EngineRanks cooperative(3, first);
    check_all_reduces(cooperative, 5'000, 20);
  }
}

// Runs an all-reduce in which rank 1 passes `odd_count`. Returns true if the error names that
// count, and nothing was stored.
bool reports_mismatch(EngineRanks& ranks, int rank, std::size_t odd_count) {
  const auto lane = ranks.make_lane(rank);
  const std::size_t count = rank == 1 ? odd_count : 6'000;
  const std::uint64_t send = ranks.upload(rank, random_values(6'000, 1));
  const std::vector<float> poison(6'000, 7.0F);
  const std::uint64_t recv = ranks.upload(rank, poison);
  try {
    ranks.engine(rank).execute(*lane, all_reduce_call(count, send, recv));
  } catch (const Error& error) {
    const std::string text = error.what();
    return error.code() == hcclInvalidUsage &&
           text.find("rank 1 all_reduce(" + std::to_string(odd_count)) != std::string::npos &&
           same_bits(ranks.read(rank, recv, 6'000), poison);
  }
  return false;
}

TEST(Engine, MismatchIsReportedToAllAndWritesNothing) {
  for (const std::size_t odd_count :
       {3u, 5'000u}) {  // rank 1's call is eager, then cooperative; the others' are cooperative
    EngineRanks ranks(3);
    std::atomic<int> reported{0};
    ranks.run([&](int rank) { reported += reports_mismatch(ranks, rank, odd_count) ? 1 : 0; });
    EXPECT_EQ(reported, 3);
  }
}

TEST(Engine, TimeoutNamesMissingRank) {
  EngineOptions options;
  options.operation_timeout = 200ms;
  for (const std::size_t count : {4u, 5'000u}) {
    EngineRanks ranks(3, 0, options);
    ranks.run([&](int rank) {
      if (rank == 2) return;
      const auto lane = ranks.make_lane(rank);
      const std::uint64_t buffer = ranks.upload(rank, random_values(count, 1));
      try {
        ranks.engine(rank).execute(*lane, all_reduce_call(count, buffer, buffer));
        ADD_FAILURE() << "completed without rank 2";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), hcclSystemError);
        EXPECT_NE(std::string(error.what()).find("rank 2"), std::string::npos) << error.what();
      }
    });
  }
}

// A rank may post its part after the others have given up on the operation. The late part must not
// complete the next call on the lane.
TEST(Engine, LateArrivalDoesNotReachNextCall) {
  EngineOptions options;
  options.operation_timeout = 50ms;
  EngineRanks ranks(2, 0, options);
  const auto lane0 = ranks.make_lane(0);
  const auto lane1 = ranks.make_lane(1);
  const std::uint64_t send = ranks.upload(0, {1.0F, 2.0F});
  const std::uint64_t recv = ranks.upload(0, {-1.0F, -1.0F});
  const CollectiveCall call = all_reduce_call(2, send, recv);
  EXPECT_THROW(ranks.engine(0).execute(*lane0, call), Error);
  lane1->attach();
  const Slot& mine = lane1->slot(0);
  Slot& late = lane1->slot(1);
  late.collective = mine.collective;
  late.type = mine.type;
  late.operation = mine.operation;
  late.root = mine.root;
  late.count = mine.count;
  late.number.store(mine.number);
  EXPECT_THROW(ranks.engine(0).execute(*lane0, call), Error);
  EXPECT_EQ(ranks.read(0, recv, 2), (std::vector<float>{-1.0F, -1.0F}));
}

TEST(Engine, DepartedRankFailsWaiters) {
  EngineRanks ranks(2);
  ranks.run([&](int rank) {
    if (rank == 1) {
      ranks.segment(1).depart();
      return;
    }
    const auto lane = ranks.make_lane(rank);
    const std::uint64_t buffer = ranks.upload(rank, random_values(4, 1));
    EXPECT_THROW(ranks.engine(rank).execute(*lane, all_reduce_call(4, buffer, buffer)), Error);
  });
}

// The rank that raises a fault may be stopped before it fails the operations in flight. An abort
// must still wake the waiters.
TEST(Engine, AbortAfterFaultWakesWaiters) {
  for (const std::size_t count : {4u, 5'000u}) {
    EngineRanks ranks(2);
    ranks.run([&](int rank) {
      const auto lane = ranks.make_lane(rank);
      if (rank == 0) {
        const std::uint64_t buffer = ranks.upload(rank, random_values(count, 1));
        EXPECT_THROW(ranks.engine(rank).execute(*lane, all_reduce_call(count, buffer, buffer)),
                     Error);
        return;
      }
      lane->attach();
      while (!lane->block().bell.has_sleepers()) std::this_thread::sleep_for(1ms);
      ranks.segment(rank).control().header().fault.state.store(FaultRecord::being_written);
      ranks.segment(rank).fail(hcclSystemError, "aborted");
    });
  }
}

// A peer that is stopped within a tile must not delay the other ranks, and the peer's late stores
// must not reach their buffers.
TEST(Engine, LeavesStoppedPeerOnOldPages) {
  EngineRanks ranks(2);
  const std::size_t count = 100'000;
  const std::uint64_t buffer = ranks.upload(0, random_values(count, 1));
  const std::uint64_t before = ranks.arena(0).file_offset(buffer);
  const std::vector<float> kept = ranks.read(0, buffer, count);
  const auto lane0 = ranks.make_lane(0);
  const auto lane1 = ranks.make_lane(1);
  lane1->attach();
  lane1->current_tile(1).store(1);  // as if rank 1 had claimed a tile
  std::thread stopped([&] {
    std::this_thread::sleep_for(50ms);
    ranks.segment(1).fault().raise(hcclSystemError, "test");
  });
  EXPECT_THROW(ranks.engine(0).execute(*lane0, all_reduce_call(count, buffer, buffer)), Error);
  stopped.join();
  EXPECT_NE(ranks.arena(0).file_offset(buffer), before);
  EXPECT_EQ(ranks.read(0, buffer, count), kept);
  const float late = 123.0F;
  std::memcpy(ranks.arena(0).view()->at(before), &late, sizeof late);
  EXPECT_EQ(ranks.read(0, buffer, count), kept);
}

// Runs all-reduces until rank 0 aborts before operation `at`. Returns true if the abort ended the
// all-reduces and no other rank wrote to this rank's buffer afterwards.
bool run_until_aborted(EngineRanks& ranks, int rank, int at) {
  constexpr std::size_t kCount = 200'000;
  const auto lane = ranks.make_lane(rank);
  const std::uint64_t buffer = ranks.upload(rank, random_values(kCount, 1));
  return is_consistent_after_abort(ranks, rank, buffer, kCount, [&] {
    for (int op = 0; op < 1'000; ++op) {
      if (rank == 0 && op == at) ranks.segment(0).fault().raise(hcclSystemError, "aborted");
      ranks.engine(rank).execute(*lane, all_reduce_call(kCount, buffer, buffer));
    }
  });
}

TEST(Engine, AbortDuringTilesLeavesAllRanksConsistent) {
  for (int round = 0; round < 20; ++round) {
    EngineRanks ranks(3);
    std::atomic<int> consistent{0};
    ranks.run([&](int rank) { consistent += run_until_aborted(ranks, rank, round) ? 1 : 0; });
    EXPECT_EQ(consistent, 3);
  }
}

TEST(Engine, HolesOfInputStayHoles) {
  EngineRanks ranks(2);
  const std::size_t count = 1'000'000;
  ranks.run([&](int rank) {
    const auto lane = ranks.make_lane(rank);
    const std::uint64_t send = ranks.arena(rank).allocate(count * sizeof(float));
    const std::uint64_t recv = ranks.upload(rank, std::vector<float>(count, 3.0F));
    ranks.engine(rank).execute(*lane, all_reduce_call(count, send, recv));
    EXPECT_EQ(ranks.read(rank, recv, count), std::vector<float>(count, 0.0F));
    EXPECT_EQ(ranks.arena(rank).view()->content(ranks.arena(rank).file_offset(send),
                                                count * sizeof(float)),
              device::Content::hole);
  });
}

}  // namespace
}  // namespace hccl::node
