// SPDX-License-Identifier: Apache-2.0
// Compares the simulator's model with closed forms.
#include "proof/simulator.h"

#include "algorithms/catalogue.h"
#include "all_ranks.h"

#include <cmath>

#include <gtest/gtest.h>

namespace hccl::proof {
namespace {

constexpr double kLatency = 5e-6;
constexpr double kBandwidth = 1e9;

Cluster cluster_of(std::int32_t rank_count, std::int32_t ranks_per_node) {
  Cluster cluster;
  for (std::int32_t rank = 0; rank < rank_count; ++rank)
    cluster.node_of_rank.push_back(rank / ranks_per_node);
  cluster.network = {kLatency, kBandwidth};
  cluster.memory = {1e-7, 1e10};
  cluster.slice = 1 << 16;
  return cluster;
}

double cost(const char* name, Collective collective, const Cluster& cluster, std::uint64_t bytes,
            std::uint32_t pipeline = 1, std::uint32_t channels = 1) {
  Shape shape{.collective = collective,
              .rank_count = static_cast<std::int32_t>(cluster.node_of_rank.size()),
              .channels = channels,
              .pipeline = pipeline};
  test::AllRanks all;
  for (shape.channel = 0; shape.channel < channels; ++shape.channel) {
    const auto one = test::build_all(shape, algorithms::find(name, collective)->build);
    all.shapes.insert(all.shapes.end(), one.shapes.begin(), one.shapes.end());
    all.schedules.insert(all.schedules.end(), one.schedules.begin(), one.schedules.end());
  }
  return simulate(all.shapes, all.schedules, cluster, bytes);
}

TEST(Simulator, MatchesClosedFormOfRing) {
  for (const std::int32_t n : {2, 3, 8, 60}) {
    const std::uint64_t bytes = 120'000 * static_cast<std::uint64_t>(n);
    const double expected = 2 * (n - 1) * (kLatency + 120'000 / kBandwidth);
    EXPECT_NEAR(cost("ring", Collective::all_reduce, cluster_of(n, 1), bytes), expected,
                1e-9 * expected);
  }
}

TEST(Simulator, CountsFoldingAfterLastSlice) {
  Cluster cluster = cluster_of(4, 1);
  cluster.reduction = 4e9;
  const double chunk = 131'072;
  const double folding = 3 * (65'536 / 4e9);
  const double expected = 6 * (kLatency + chunk / kBandwidth) + folding;
  EXPECT_NEAR(cost("ring", Collective::all_reduce, cluster, 524'288), expected, 1e-9 * expected);
}

TEST(Simulator, MatchesClosedFormOfHalvingDoubling) {
  const double expected = 2 * (3 * kLatency + 7 * 100'000 / kBandwidth);
  EXPECT_NEAR(cost("halving_doubling", Collective::all_reduce, cluster_of(8, 1), 800'000), expected,
              1e-9 * expected);
}

// The last of n ranks must have all data when the root has sent the message and the last slice has
// been forwarded n - 2 times.
TEST(Simulator, PipelinesChainBySlices) {
  const double slice = 65'536;
  const double message = 16 * slice;
  const double expected = 4 * kLatency + (message + 3 * slice) / kBandwidth;
  EXPECT_NEAR(cost("chain", Collective::broadcast, cluster_of(5, 1), 1'048'576), expected,
              1e-9 * expected);
}

// The two ranks of each node must share the node's network card.
TEST(Simulator, SharesCardAmongRanksOfNode) {
  const double apart = cost("direct", Collective::all_gather, cluster_of(4, 1), 1'000'000);
  EXPECT_NEAR(apart, kLatency + 3e6 / kBandwidth, 1e-9);
  const double shared = cost("direct", Collective::all_gather, cluster_of(4, 2), 1'000'000);
  EXPECT_NEAR(shared, kLatency + 4e6 / kBandwidth, 1e-9);
}

// Transfers from several nodes must pass the receiver's network card one after the other.
TEST(Simulator, SharesCardAmongItsSenders) {
  EXPECT_NEAR(cost("direct", Collective::reduce, cluster_of(5, 1), 1'000'000),
              kLatency + 4e6 / kBandwidth, 1e-9);
}

// The reduction up a tree and the broadcast down that tree must overlap.
TEST(Simulator, OverlapsUpAndDownInDoubleTree) {
  const double bytes = 64e6;
  const double best = bytes / kBandwidth;
  const double tree = cost("tree", Collective::all_reduce, cluster_of(16, 1), 64'000'000, 4, 2);
  EXPECT_GT(tree, best);
  EXPECT_LT(tree, 2.3 * best);
  const double one_after_the_other =
      cost("tree", Collective::all_reduce, cluster_of(16, 1), 64'000'000, 1, 2);
  EXPECT_LT(tree, one_after_the_other);
}

TEST(Simulator, IsInfiniteIfNothingCompletes) {
  Shape shape{.collective = Collective::broadcast, .rank_count = 2};
  test::AllRanks all =
      test::build_all(shape, algorithms::find("chain", Collective::broadcast)->build);
  all.schedules[0] = {};
  EXPECT_TRUE(std::isinf(simulate(all.shapes, all.schedules, cluster_of(2, 1), 100)));
}

}  // namespace
}  // namespace hccl::proof
