// SPDX-License-Identifier: Apache-2.0
// Every sample of a step goes to one rank, and micro-batches are the same for every number of
// ranks.
#include "sampling.h"

#include <algorithm>
#include <cstdlib>
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

TEST(Shifts, AreFewAndOfTheirEpoch) {
  int moved = 0;
  int others = 0;
  for (std::uint32_t sample = 0; sample < 1000; ++sample) {
    const auto [right, down] = shift_of(sample, 1, 1);
    EXPECT_LE(std::abs(right), 1);
    EXPECT_LE(std::abs(down), 1);
    moved += right != 0 || down != 0 ? 1 : 0;
    const Shift next = shift_of(sample, 1, 2);
    others += next.right != right || next.down != down ? 1 : 0;
  }
  EXPECT_NEAR(moved, 1000 * 0.3 * 8 / 9, 60);
  EXPECT_GT(others, 300);
}

}  // namespace
}  // namespace ddp_trainer
