// SPDX-License-Identifier: Apache-2.0
// Shapes as keys, and what buffers mean.
#include "schedule/shape.h"

#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace hccl::schedule {
namespace {

TEST(Shape, DiffersInEveryFieldAndSoDoesItsHash) {
  std::vector<Shape> shapes(9);
  shapes[1].collective = Collective::all_reduce;
  shapes[2].in_place = true;
  shapes[3].rank = 1;
  shapes[4].rank_count = 2;
  shapes[5].root = 1;
  shapes[6].channel = 1;
  shapes[7].channels = 2;
  shapes[8].pipeline = 2;
  std::set<std::size_t> hashes;
  for (const Shape& shape : shapes) hashes.insert(std::hash<Shape>()(shape));
  EXPECT_EQ(hashes.size(), shapes.size());
  for (std::size_t i = 1; i < shapes.size(); ++i) EXPECT_NE(shapes[i], shapes[0]);
}

TEST(Shape, OnlyTheRootOfABroadcastHasInputAndOfAReduceOutput) {
  Shape shape;
  shape.rank_count = 3;
  shape.root = 1;
  shape.in_place = true;
  shape.collective = Collective::broadcast;
  EXPECT_FALSE(shape.has_input() || shape.aliased());
  EXPECT_TRUE(shape.has_output());
  shape.rank = 1;
  EXPECT_TRUE(shape.has_input() && shape.aliased());
  shape.collective = Collective::reduce;
  EXPECT_TRUE(shape.has_output() && shape.aliased());
  shape.rank = 0;
  EXPECT_FALSE(shape.has_output() || shape.aliased());
}

}  // namespace
}  // namespace hccl::schedule
