// SPDX-License-Identifier: Apache-2.0
// The two trees: whole, shallow, and with the work of each rank in one of them only.
#include "algorithms/binary_tree.h"

#include <algorithm>
#include <bit>

#include <gtest/gtest.h>

namespace hccl::algorithms {
namespace {

std::vector<Family> tree(std::int32_t rank_count, std::int32_t root, std::uint32_t channel) {
  std::vector<Family> families;
  schedule::Shape shape;
  shape.rank_count = rank_count;
  shape.root = root;
  shape.channel = channel;
  for (shape.rank = 0; shape.rank < rank_count; ++shape.rank)
    families.push_back(family_in_tree(shape));
  return families;
}

void expect_whole(const std::vector<Family>& families, std::int32_t root) {
  const auto at = [&](std::int32_t rank) { return families.at(static_cast<std::size_t>(rank)); };
  const auto count = static_cast<std::int32_t>(families.size());
  for (std::int32_t rank = 0; rank < count; ++rank) {
    EXPECT_EQ(at(rank).parent.has_value(), rank != root);
    EXPECT_LE(at(rank).children.size(), rank == root ? 1U : 2U);
    for (const std::int32_t child : at(rank).children) EXPECT_EQ(at(child).parent, rank);
    int depth = 0;
    for (std::int32_t up = rank; up != root; up = *at(up).parent) ++depth;
    EXPECT_LE(depth, std::bit_width(static_cast<std::uint32_t>(count - 1)));
    if (rank == root) continue;
    const auto siblings = at(*at(rank).parent).children;
    EXPECT_EQ(std::count(siblings.begin(), siblings.end(), rank), 1);
  }
}

TEST(BinaryTree, ReachesEveryRankFromEveryRoot) {
  for (std::int32_t count = 1; count <= 70; ++count) {
    for (std::int32_t root = 0; root < count; ++root) {
      expect_whole(tree(count, root, 0), root);
      expect_whole(tree(count, root, 1), root);
    }
  }
}

TEST(BinaryTree, NobodyPassesOnInBothTrees) {
  for (std::int32_t count = 2; count <= 200; ++count) {
    const std::int32_t root = count / 3;
    const auto first = tree(count, root, 0);
    const auto second = tree(count, root, 1);
    for (std::size_t rank = 0; rank < first.size(); ++rank) {
      if (rank == static_cast<std::size_t>(root)) continue;
      EXPECT_TRUE(first[rank].children.empty() || second[rank].children.empty())
          << rank << " of " << count;
    }
  }
}

}  // namespace
}  // namespace hccl::algorithms
