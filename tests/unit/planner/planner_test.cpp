// SPDX-License-Identifier: Apache-2.0
// Tests the planner, and the topology for which it plans.

#include "planner/planner.h"

#include "base/error.h"
#include "planner/schedule_cache.h"
#include "planner/topology.h"
#include "thrown.h"

#include <string>

#include <gtest/gtest.h>

namespace hccl::planner {
namespace {

// Tests the table's choices and forced algorithms, and that each schedule is built only once.

// `layout` has one letter per rank. The letter names the rank's node.
Planner planner_of(const std::string& layout, const std::string& forced = "") {
  std::vector<std::string> identities;
  for (const char letter : layout) identities.emplace_back(1, letter);
  return {Topology(identities), forced};
}

std::string_view name_of_plan(const Planner& planner, Collective collective, std::uint64_t bytes) {
  return planner.plan({.collective = collective, .bytes = bytes}).algorithm->name;
}

TEST(Plan, HasAlgorithmForEveryCollectiveAndSize) {
  for (const char* layout : {"a", "ab", "aab", "aaaabbbb"}) {
    const Planner planner = planner_of(layout);
    for (int number = 1; number < static_cast<int>(Collective::point_to_point); ++number) {
      const auto collective = static_cast<Collective>(number);
      for (const std::uint64_t bytes :
           {std::uint64_t{0}, std::uint64_t{1} << 20, ~std::uint64_t{0}}) {
        const Plan plan = planner.plan({.collective = collective, .bytes = bytes});
        ASSERT_NE(plan.algorithm, nullptr) << name_of(collective);
        EXPECT_EQ(plan.algorithm->collective, collective);
        EXPECT_GE(plan.shape.pipeline, 1U);
        EXPECT_GE(plan.shape.channels, 1U);
      }
    }
  }
}

TEST(Plan, MinimisesDataOfLargeMessages) {
  const Planner eight = planner_of("abcdefgh");
  EXPECT_EQ(name_of_plan(eight, Collective::all_reduce, 64 << 20), "ring");
  EXPECT_EQ(name_of_plan(eight, Collective::all_reduce, 64), "one_shot");
  EXPECT_EQ(name_of_plan(planner_of("abcdefghi"), Collective::all_reduce, 64), "halving_doubling");
}

TEST(Plan, IsHierarchicalOnEvenNodes) {
  const Planner even = planner_of("aaaabbbb");
  const Plan plan = even.plan({.collective = Collective::all_reduce, .bytes = 64 << 20});
  EXPECT_EQ(plan.algorithm->name, "hierarchical");
  EXPECT_EQ(plan.algorithm->across_nodes, "ring");
  EXPECT_EQ(plan.shape.channels, 4U);
  EXPECT_EQ(name_of_plan(even, Collective::all_reduce, 64), "one_shot");
  EXPECT_EQ(name_of_plan(even, Collective::all_gather, 64 << 20), "ring");
  EXPECT_EQ(name_of_plan(planner_of("abbb"), Collective::all_reduce, 64 << 20), "ring");
  EXPECT_EQ(name_of_plan(planner_of("aaaa"), Collective::all_reduce, 64 << 20), "ring");
}

TEST(Plan, UsesForcedAlgorithmIfItHasCollective) {
  const Planner planner = planner_of("aaaabbbb", "tree");
  const Plan tree = planner.plan({.collective = Collective::all_reduce, .bytes = 16 << 20});
  EXPECT_EQ(tree.algorithm->name, "tree");
  EXPECT_EQ(tree.shape.channels, 2U);
  EXPECT_EQ(tree.shape.pipeline, 64U);
  EXPECT_EQ(name_of_plan(planner, Collective::all_to_all, 64), "pairwise");
  EXPECT_EQ(name_of_plan(planner_of("abbb", "hierarchical"), Collective::all_reduce, 64),
            "hierarchical");
}

TEST(Plan, GivesTheReasonForItsChoice) {
  const auto reason = [](const char* layout, const char* forced, Collective collective) {
    return planner_of(layout, forced).reason({.collective = collective, .bytes = 64 << 20});
  };
  const std::string table =
      planner_of("aaaa").reason({.collective = Collective::all_reduce, .bytes = 64 << 20});
  EXPECT_EQ(reason("aabb", "ring", Collective::all_reduce), "HCCL_ALGO=ring forces it");
  EXPECT_EQ(reason("aabb", "", Collective::all_reduce),
            "all nodes have the same number of ranks, so each node reduces its own data first");
  EXPECT_EQ(reason("aaaa", "hierarchical", Collective::all_reduce),
            "HCCL_ALGO=hierarchical needs several nodes, and " + table);
  EXPECT_TRUE(reason("aaaa", "pairwise", Collective::all_reduce)
                  .starts_with("HCCL_ALGO=pairwise does not support all_reduce, and "));
}

TEST(Plan, NumbersRanksNodeByNodeUnlessTheyOwnBlocks) {
  const Planner planner = planner_of("abab");
  const Plan reduce = planner.plan({.collective = Collective::reduce, .rank = 2, .root = 1});
  EXPECT_EQ(reduce.shape.rank, 1);
  EXPECT_EQ(reduce.shape.root, 2);
  EXPECT_EQ(planner.rank_at(Collective::reduce, 1), 2);
  const Plan gather = planner.plan({.collective = Collective::all_gather, .rank = 2});
  EXPECT_EQ(gather.shape.rank, 2);
}

TEST(Plan, RefusesUnknownAlgorithmAndListsKnownOnes) {
  EXPECT_NO_THROW(Planner::check(""));
  EXPECT_NO_THROW(Planner::check("ring"));
  EXPECT_EQ(test::error_of(hcclInvalidArgument, [] { Planner::check("rign"); }),
            "HCCL_ALGO=\"rign\" is not valid; set it to one of ring, tree, chain, "
            "halving_doubling, direct, one_shot, pairwise, hierarchical");
}

TEST(ScheduleCache, KeepsSchedulePerAlgorithmAndShape) {
  const Planner planner = planner_of("aaaabbbb");
  ScheduleCache cache(planner);
  const Plan small = planner.plan({.collective = Collective::all_reduce, .bytes = 8});
  const Plan large = planner.plan({.collective = Collective::all_reduce, .bytes = 1 << 20});
  const schedule::Schedule& first = cache.get(small, small.shape);
  EXPECT_EQ(first, planner.build(small, small.shape));
  EXPECT_EQ(&cache.get(small, small.shape), &first);
  EXPECT_NE(&cache.get(large, large.shape), &first);
  schedule::Shape shape = small.shape;
  shape.rank = 1;
  EXPECT_EQ(cache.get(small, shape), planner.build(small, shape));
}

// Tests topologies of one node and of several, with ranks in and out of order.

TEST(Topology, OneNodeKeepsRankOrder) {
  const Topology one(std::vector<std::string>(3, "a"));
  EXPECT_TRUE(one.is_one_node());
  EXPECT_EQ(one.node_order(), (std::vector<int>{0, 1, 2}));
}

TEST(Topology, NumbersNodesByLowestRanks) {
  const Topology mixed({"b", "a", "c", "b", "c", "c"});
  EXPECT_FALSE(mixed.is_one_node());
  EXPECT_EQ(mixed.ranks(), 6);
  EXPECT_EQ(mixed.nodes(), (std::vector<std::vector<int>>{{0, 3}, {1}, {2, 4, 5}}));
  EXPECT_EQ(mixed.node_of(4), 2);
  EXPECT_EQ(mixed.local_rank(5), 2);
}

TEST(Topology, OrdersRanksNodeByNode) {
  const Topology mixed({"b", "a", "c", "b", "c", "c"});
  EXPECT_EQ(mixed.node_order(), (std::vector<int>{0, 3, 1, 2, 4, 5}));
  for (int place = 0; place < 6; ++place)
    EXPECT_EQ(mixed.position_of(mixed.node_order()[static_cast<std::size_t>(place)]), place);
}

}  // namespace
}  // namespace hccl::planner
