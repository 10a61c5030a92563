// SPDX-License-Identifier: Apache-2.0
// Every tile is taken once, whoever comes; few tiles are found where the worker left off last time.
#include "node/tile_claims.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace hccl::node {
namespace {

TEST(TileClaims, TakeEveryTileOnceInAnyOrderOfWorkers) {
  std::mt19937 numbers(7);
  const auto random = [&] { return static_cast<std::uint32_t>(numbers()); };
  for (std::uint32_t tiles = 1; tiles <= 70; ++tiles) {
    const std::uint32_t workers = 1 + random() % 20;
    std::vector<int> taken(tiles, 0);
    std::uint32_t claimed = 0;
    for (std::uint32_t claim = 0; claim < tiles; ++claim) {
      const auto next = TileClaims(claimed, tiles).next(random(), workers);
      ASSERT_TRUE(next) << claim << " of " << tiles << " taken";
      ASSERT_LT(next->tile, tiles);
      ++taken[next->tile];
      claimed = next->claimed;
    }
    EXPECT_EQ(taken, std::vector<int>(tiles, 1)) << tiles << " tiles";
    EXPECT_FALSE(TileClaims(claimed, tiles).next(random(), workers)) << tiles << " tiles";
  }
}

// Workers take turns, the last one first.
void expect_own_shares(std::uint32_t workers, std::uint32_t each) {
  std::uint32_t claimed = 0;
  for (std::uint32_t claim = 0; claim < workers * each; ++claim) {
    const std::uint32_t worker = workers - 1 - claim % workers;
    const auto next = TileClaims(claimed, workers * each).next(worker, workers);
    ASSERT_TRUE(next);
    EXPECT_EQ(next->tile, worker * each + claim / workers) << worker << " of " << workers;
    claimed = next->claimed;
  }
}

TEST(TileClaims, GiveEachWorkerItsShareWhereTilesAreFew) {
  for (const std::uint32_t workers : {1u, 2u, 3u, 8u}) {
    expect_own_shares(workers, 1);
    expect_own_shares(workers, 2);
    expect_own_shares(workers, 4);
  }
}

TEST(TileClaims, GoOnBeforeTheShareWhenItIsTaken) {
  EXPECT_EQ(TileClaims(0b1100, 4).next(1, 2)->tile, 0u);
  EXPECT_EQ(TileClaims(0x7fffffff, 32).next(0, 1)->tile, 31u);
  EXPECT_FALSE(TileClaims(0xffffffff, 32).next(0, 1));
}

}  // namespace
}  // namespace hccl::node
