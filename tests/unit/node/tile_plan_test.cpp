// SPDX-License-Identifier: Apache-2.0
// Tiles cover every element of every chunk exactly once.
#include "node/tile_plan.h"

#include <map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace hccl::node {
namespace {

void expect_every_byte_once(Collective collective, std::uint64_t count, int ranks) {
  CollectiveCall call;
  call.collective = collective;
  call.type = hcclFloat32;
  call.count = count;
  const TilePlan plan(call, ranks, 2, chunk_bytes(call, ranks));
  const int chunks = collective == Collective::all_reduce ? 1 : ranks;
  std::vector<std::uint64_t> covered(static_cast<std::size_t>(chunks), 0);
  for (std::uint32_t number = 0; number < plan.tiles(); ++number) {
    const Tile tile = plan.tile(number);
    auto& end = covered.at(static_cast<std::size_t>(tile.chunk));
    EXPECT_EQ(tile.first_byte, end);
    EXPECT_GT(tile.bytes, 0u);
    EXPECT_LE(tile.bytes, TilePlan::kMaxTileBytes);
    EXPECT_EQ(tile.bytes % 4, 0u);
    end += tile.bytes;
  }
  for (const std::uint64_t end : covered) EXPECT_EQ(end, count * 4);
}

TEST(TilePlan, CoversEveryByteOnce) {
  for (const Collective collective :
       {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter}) {
    for (const std::uint64_t count : {300ull, 1'024ull, 65'537ull, 1'000'003ull}) {
      for (const int ranks : {2, 3, 8}) expect_every_byte_once(collective, count, ranks);
    }
  }
}

void expect_every_pair_once(std::uint64_t part, int ranks) {
  CollectiveCall call;
  call.collective = Collective::all_to_all;
  call.type = hcclFloat32;
  call.count = part * static_cast<std::uint64_t>(ranks);
  const TilePlan plan(call, ranks, 2, chunk_bytes(call, ranks));
  EXPECT_EQ(chunk_bytes(call, ranks), part * 4);
  std::map<std::pair<int, int>, std::uint64_t> covered;
  for (std::uint32_t number = 0; number < plan.tiles(); ++number) {
    const Tile tile = plan.tile(number);
    EXPECT_LE(tile.bytes, TilePlan::kMaxTileBytes);
    for (int peer = tile.first_peer; peer < tile.end_peer; ++peer) {
      EXPECT_TRUE(plan.stores_to(number, tile.chunk) && plan.stores_to(number, peer));
      std::uint64_t& end = covered[{tile.chunk, peer}];
      EXPECT_EQ(tile.first_byte, end);
      end += tile.bytes;
    }
  }
  EXPECT_EQ(covered.size(), static_cast<std::size_t>(ranks * (ranks + 1) / 2));
  for (const auto& [pair, end] : covered) {
    EXPECT_LE(pair.first, pair.second);
    EXPECT_EQ(end, part * 4);
  }
}

// In an all-to-all, every ordered pair of ranks has a chunk; a tile exchanges those of one pair.
TEST(TilePlan, OfAnAllToAllCoversEveryPairOnce) {
  for (const std::uint64_t part : {100ull, 1'024ull, 1'025ull, 70'001ull}) {
    for (const int ranks : {2, 3, 8}) expect_every_pair_once(part, ranks);
  }
}

TEST(TilePlan, ReduceStoresToItsRoot) {
  CollectiveCall call;
  call.type = hcclFloat32;
  call.count = 100'000;
  call.collective = Collective::reduce;
  call.root = 2;
  EXPECT_TRUE(TilePlan(call, 4, 2, chunk_bytes(call, 4)).stores_to(0, 2));
  EXPECT_FALSE(TilePlan(call, 4, 2, chunk_bytes(call, 4)).stores_to(0, 1));
}

TEST(TilePlan, ReduceScatterStoresToTheChunksRank) {
  CollectiveCall call;
  call.type = hcclFloat32;
  call.count = 100'000;
  call.collective = Collective::reduce_scatter;
  const TilePlan scatter(call, 4, 2, chunk_bytes(call, 4));
  EXPECT_TRUE(scatter.stores_to(0, 0));
  EXPECT_FALSE(scatter.stores_to(0, 3));
  EXPECT_TRUE(scatter.stores_to(scatter.tiles() - 1, 3));
  call.collective = Collective::all_gather;
  EXPECT_TRUE(TilePlan(call, 4, 2, chunk_bytes(call, 4)).stores_to(0, 3));
}

}  // namespace
}  // namespace hccl::node
