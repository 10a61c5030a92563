// SPDX-License-Identifier: Apache-2.0
// Tests how a collective is cut into chunks and tiles, and how ranks claim tiles.

#include "node/chunk_map.h"
#include "node/tile_claims.h"
#include "node/tile_plan.h"

#include <map>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace hccl::node {
namespace {

// Tests which ranks send each chunk, and which ranks receive it.

CollectiveCall call_of(Collective collective, int root = -1) {
  return {.collective = collective, .root = root};
}

void expect_chunks(const RankChunks& chunks, int first_rank, int end_rank, int chunk) {
  EXPECT_EQ(chunks.first_rank, first_rank);
  EXPECT_EQ(chunks.end_rank, end_rank);
  EXPECT_EQ(chunks.chunk, chunk);
}

TEST(ChunkMap, SourcesFollowDefinitions) {
  expect_chunks(ChunkMap(call_of(Collective::all_reduce), 4).sources(2, 0), 0, 4, 0);
  expect_chunks(ChunkMap(call_of(Collective::reduce, 1), 4).sources(1, 0), 0, 4, 0);
  expect_chunks(ChunkMap(call_of(Collective::reduce_scatter), 4).sources(2, 0), 0, 4, 2);
  expect_chunks(ChunkMap(call_of(Collective::broadcast, 3), 4).sources(2, 0), 3, 4, 0);
  expect_chunks(ChunkMap(call_of(Collective::all_gather), 4).sources(2, 1), 1, 2, 0);
  expect_chunks(ChunkMap(call_of(Collective::all_to_all), 4).sources(2, 1), 1, 2, 2);
}

// Expects that each chunk that a rank receives is in exactly one set of destinations.
void expect_all_destinations_once(const CollectiveCall& call, int ranks) {
  const ChunkMap map(call, ranks);
  const bool one_set = !call.traits().has_blocks_in_input && !call.traits().has_blocks_in_output;
  for (int rank = 0; rank < ranks; ++rank) {
    for (int chunk = 0; chunk < recv_chunks(call, ranks); ++chunk) {
      int found = 0;
      for (int number = 0; number < (one_set ? 1 : ranks); ++number) {
        const RankChunks to = map.destinations(number);
        if (!to.has(rank) || to.chunk != chunk) continue;
        ++found;
        const RankChunks from = map.sources(rank, chunk);
        expect_chunks(map.sources(to.first_rank, to.chunk), from.first_rank, from.end_rank,
                      from.chunk);
      }
      EXPECT_EQ(found, receives(call, rank) ? 1 : 0) << name_of(call.collective) << ' ' << rank;
    }
  }
}

TEST(ChunkMap, DestinationsOfOneSetShareSources) {
  for (const int ranks : {1, 2, 5}) {
    expect_all_destinations_once(call_of(Collective::all_reduce), ranks);
    expect_all_destinations_once(call_of(Collective::reduce, ranks - 1), ranks);
    expect_all_destinations_once(call_of(Collective::reduce_scatter), ranks);
    expect_all_destinations_once(call_of(Collective::broadcast, 0), ranks);
    expect_all_destinations_once(call_of(Collective::all_gather), ranks);
  }
}

// Every tile must be claimed once, whatever the order of the workers.

TEST(TileClaims, ClaimEveryTileOnceInAnyOrder) {
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

// The workers claim tiles in turn, from the last worker to the first. Expects that each worker gets
// the tiles of its own share.
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

TEST(TileClaims, GiveEachWorkerItsShareOfFewTiles) {
  for (const std::uint32_t workers : {1u, 2u, 3u, 8u}) {
    expect_own_shares(workers, 1);
    expect_own_shares(workers, 2);
    expect_own_shares(workers, 4);
  }
}

TEST(TileClaims, WrapAroundWhenShareIsTaken) {
  EXPECT_EQ(TileClaims(0b1100, 4).next(1, 2)->tile, 0u);
  EXPECT_EQ(TileClaims(0x7fffffff, 32).next(0, 1)->tile, 31u);
  EXPECT_FALSE(TileClaims(0xffffffff, 32).next(0, 1));
}

// Expects that the tiles cover every byte of every chunk exactly once.

void expect_every_byte_once(Collective collective, std::uint64_t count, int ranks) {
  CollectiveCall call{.collective = collective, .type = hcclFloat32, .count = count};
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
  CollectiveCall call{.collective = Collective::all_to_all,
                      .type = hcclFloat32,
                      .count = part * static_cast<std::uint64_t>(ranks)};
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

// An all-to-all tile exchanges data between one rank and one or several peers. The tiles must cover
// each pair of ranks once.
TEST(TilePlan, AllToAllCoversEveryPairOnce) {
  for (const std::uint64_t part : {100ull, 1'024ull, 1'025ull, 70'001ull}) {
    for (const int ranks : {2, 3, 8}) expect_every_pair_once(part, ranks);
  }
}

TEST(TilePlan, ReduceStoresToRoot) {
  CollectiveCall call{
      .collective = Collective::reduce, .type = hcclFloat32, .root = 2, .count = 100'000};
  EXPECT_TRUE(TilePlan(call, 4, 2, chunk_bytes(call, 4)).stores_to(0, 2));
  EXPECT_FALSE(TilePlan(call, 4, 2, chunk_bytes(call, 4)).stores_to(0, 1));
}

TEST(TilePlan, ReduceScatterStoresToRankOfChunk) {
  CollectiveCall call{
      .collective = Collective::reduce_scatter, .type = hcclFloat32, .count = 100'000};
  const TilePlan scatter(call, 4, 2, chunk_bytes(call, 4));
  EXPECT_TRUE(scatter.stores_to(0, 0));
  EXPECT_FALSE(scatter.stores_to(0, 3));
  EXPECT_TRUE(scatter.stores_to(scatter.tiles() - 1, 3));
  call.collective = Collective::all_gather;
  EXPECT_TRUE(TilePlan(call, 4, 2, chunk_bytes(call, 4)).stores_to(0, 3));
}

}  // namespace
}  // namespace hccl::node
