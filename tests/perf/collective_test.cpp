// SPDX-License-Identifier: Apache-2.0
// Tests that counts and bandwidth factors match those of nccl-tests. Also tests the pairs of ranks,
// and the collectives that program names select.
#include "collective.h"

#include "pairs.h"

#include <gtest/gtest.h>

namespace hccl_perf {
namespace {

const DataType kFloat = kDataTypes[hcclFloat32];
const DataType kBfloat16 = kDataTypes[hcclBfloat16];

Counts counts(const char* collective, std::uint64_t bytes, const DataType& type, int ranks) {
  return find_collective(collective)->counts(bytes, type, ranks);
}

TEST(CollectiveCounts, OfAllReduceAndBroadcastCoverTheBuffer) {
  for (const char* name : {"all_reduce", "broadcast"})
    EXPECT_EQ(counts(name, 1023, kFloat, 8), (Counts{255, 255, 255, 1020}));
}

TEST(CollectiveCounts, OfAllGatherDivideTheOutputInto16ByteParts) {
  // 250 elements / 3 = 83, rounded down to a multiple of 4
  EXPECT_EQ(counts("all_gather", 1000, kFloat, 3), (Counts{80, 80, 240, 960}));
}

TEST(CollectiveCounts, OfReduceScatterDivideTheInputInto16ByteParts) {
  // 500 elements / 3 = 166, rounded down to a multiple of 8
  EXPECT_EQ(counts("reduce_scatter", 1000, kBfloat16, 3), (Counts{160, 480, 160, 960}));
}

TEST(CollectiveCounts, OfTooFewBytesAreZero) {
  EXPECT_EQ(counts("all_gather", 8, kFloat, 8).shown_bytes, 0U);
  EXPECT_EQ(counts("all_reduce", 3, kFloat, 8).call, 0U);
}

TEST(CollectiveCounts, OfMessageRateFillAWindow) {
  EXPECT_EQ(counts("message_rate", 8, kBfloat16, 4), (Counts{4, 4 * 64, 4 * 64, 8}));
  EXPECT_EQ(find_collective("message_rate")->messages_in_turn(), 64);
}

TEST(Pairs, JoinTheTwoHalvesOfTheRanks) {
  for (int rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(partner_of(rank, 8), (rank + 4) % 8);
    EXPECT_EQ(in_first_half(rank, 8), rank < 4);
  }
  EXPECT_EQ(find_collective("pingpong")->messages_in_turn(), 2) << "there and back";
  EXPECT_EQ(find_collective("bidirectional")->messages_in_turn(), 1);
  EXPECT_DOUBLE_EQ(find_collective("pingpong")->bus_factor(8), 1);
  EXPECT_DOUBLE_EQ(find_collective("bidirectional")->bus_factor(8), 2) << "both ways";
}

TEST(BusFactor, FollowsNcclTests) {
  EXPECT_DOUBLE_EQ(find_collective("all_reduce")->bus_factor(8), 1.75);
  EXPECT_DOUBLE_EQ(find_collective("all_gather")->bus_factor(8), 0.875);
  EXPECT_DOUBLE_EQ(find_collective("reduce_scatter")->bus_factor(4), 0.75);
  EXPECT_DOUBLE_EQ(find_collective("broadcast")->bus_factor(8), 1.0);
  EXPECT_DOUBLE_EQ(find_collective("all_reduce")->bus_factor(1), 0.0);
}

TEST(FindCollective, UsesTheProgramName) {
  EXPECT_STREQ(find_collective_of_program("/usr/bin/all_reduce_perf")->name, "all_reduce");
  EXPECT_STREQ(find_collective_of_program("reduce_scatter_perf")->name, "reduce_scatter");
  EXPECT_EQ(find_collective_of_program("build/release/bin/hccl-perf"), nullptr);
  EXPECT_EQ(find_collective_of_program("_perf"), nullptr);
  EXPECT_EQ(find_collective_of_program("some_perf"), nullptr);
}

}  // namespace
}  // namespace hccl_perf
