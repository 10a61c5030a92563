// SPDX-License-Identifier: Apache-2.0
// The hierarchical all-reduce on even and uneven nodes, over each algorithm across them.
#include "algorithms/hierarchical.h"

#include "all_ranks.h"
#include "proof/verifier.h"

#include <numeric>

#include <gtest/gtest.h>

namespace hccl::algorithms {
namespace {

using Sizes = std::vector<std::int32_t>;

void prove(const Sizes& sizes, const Algorithm& rails) {
  schedule::Shape shape;
  shape.collective = Collective::all_reduce;
  shape.rank_count = std::accumulate(sizes.begin(), sizes.end(), 0);
  shape.channels = 2;
  shape.pipeline = 3;
  for (shape.channel = 0; shape.channel < 2; ++shape.channel) {
    for (const int placement : {0, 1, 2}) {
      shape.in_place = placement == 1;
      const auto build = [&](const Shape& own) {
        return hierarchical_all_reduce(own, sizes, rails);
      };
      const test::AllRanks all = test::build_all(shape, build, placement == 2);
      const auto violation =
          proof::verify(all.shapes, all.schedules, hierarchical_bound(shape, sizes, rails));
      ASSERT_FALSE(violation) << violation->text << "; " << rails.name << " across " << sizes.size()
                              << " nodes; " << test::describe(shape);
    }
  }
}

void prove_over_all_rails(const Sizes& sizes) {
  for (const Algorithm& rails : flat()) {
    if (rails.collective == Collective::all_reduce) prove(sizes, rails);
  }
}

TEST(Hierarchical, HoldsOnEvenNodes) {
  for (const std::size_t nodes : {1U, 2U, 3U, 5U, 8U, 16U}) {
    for (const std::int32_t ranks : {1, 2, 3, 8}) prove_over_all_rails(Sizes(nodes, ranks));
  }
}

TEST(Hierarchical, HoldsOnUnevenNodes) {
  for (const Sizes& sizes :
       {Sizes{1, 3, 4}, Sizes{8, 1}, Sizes{2, 8, 3, 5}, Sizes{4, 4, 4, 3}, Sizes{7, 2, 2, 2, 9}})
    prove_over_all_rails(sizes);
}

// Two ranks a node, so two rails: each rank sends across nodes what a ring over them would, halved.
TEST(Hierarchical, SendsAcrossNodesOnItsRailAlone) {
  const Sizes sizes = {2, 2, 2};
  schedule::Shape shape;
  shape.collective = Collective::all_reduce;
  shape.rank_count = 6;
  shape.rank = 3;
  const Schedule schedule =
      hierarchical_all_reduce(shape, sizes, *find("ring", Collective::all_reduce));
  double across = 0;
  for (const schedule::Step& step : schedule.steps) {
    for (const auto& send : schedule.sends(step)) {
      if (send.peer / 2 == 1) continue;
      EXPECT_EQ(send.peer % 2, 1);
      across += send.span.chunk_count;
    }
  }
  EXPECT_DOUBLE_EQ(across / schedule.block_chunks, 2.0 * (3 - 1) / 3 / 2);
}

}  // namespace
}  // namespace hccl::algorithms
