// SPDX-License-Identifier: Apache-2.0
// Every sample of a step goes to one rank, and micro-batches are the same for every number of
// ranks.
#include "sampling.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace ddp_trainer {
namespace {

TEST(Sampling, OrdersAreOfAllSamplesAndOfTheirEpoch) {
  std::vector<std::uint32_t> order = shuffled(1000, 7, 1);
  EXPECT_EQ(order, shuffled(1000, 7, 1));
  EXPECT_NE(order, shuffled(1000, 7, 2));
  EXPECT_NE(order, shuffled(1000, 8, 1));
  std::sort(order.begin(), order.end());
  std::vector<std::uint32_t> all(1000);
  std::iota(all.begin(), all.end(), 0U);
  EXPECT_EQ(order, all);
}

TEST(Sampling, RanksShareEachStep) {
  for (const int ranks : {1, 2, 4, 8}) {
    const Sampling sampling{128, 16, ranks};
    std::vector<int> taken(1437);
    for (std::size_t step = 0; step < sampling.steps(taken.size()); ++step) {
      for (int rank = 0; rank < ranks; ++rank) {
        const std::size_t first = sampling.first(step, rank);
        EXPECT_EQ(first % sampling.micro_batch, 0U);
        for (std::size_t i = 0; i < sampling.own_samples(); ++i) ++taken.at(first + i);
      }
    }
    EXPECT_EQ(std::count(taken.begin(), taken.end(), 1), 11 * 128) << ranks;
    EXPECT_EQ(std::count(taken.begin(), taken.end(), 0), 1437 - 11 * 128) << ranks;
  }
}

}  // namespace
}  // namespace ddp_trainer
