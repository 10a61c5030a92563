// SPDX-License-Identifier: Apache-2.0
// Ranks of several nodes, in order and in disorder.
#include "planner/topology.h"

#include <gtest/gtest.h>

namespace hccl::planner {
namespace {

TEST(Topology, OfOneNodeIsThatOfItsRanks) {
  const Topology one(std::vector<std::string>(3, "a"));
  EXPECT_TRUE(one.is_one_node());
  EXPECT_EQ(one.node_order(), (std::vector<int>{0, 1, 2}));
}

TEST(Topology, NumbersNodesByTheirLowestRanks) {
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
