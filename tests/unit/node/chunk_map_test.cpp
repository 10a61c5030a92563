// SPDX-License-Identifier: Apache-2.0
// Every collective delivers each chunk from where its definition says.
#include "node/chunk_map.h"

#include <gtest/gtest.h>

namespace hccl::node {
namespace {

CollectiveCall call_of(Collective collective, int root = -1) {
  CollectiveCall call;
  call.collective = collective;
  call.root = root;
  return call;
}

void expect_chunks(const RankChunks& chunks, int first_rank, int end_rank, int chunk) {
  EXPECT_EQ(chunks.first_rank, first_rank);
  EXPECT_EQ(chunks.end_rank, end_rank);
  EXPECT_EQ(chunks.chunk, chunk);
}

TEST(ChunkMap, SourcesAreThoseOfTheDefinitions) {
  expect_chunks(ChunkMap(call_of(Collective::all_reduce), 4).sources(2, 0), 0, 4, 0);
  expect_chunks(ChunkMap(call_of(Collective::reduce, 1), 4).sources(1, 0), 0, 4, 0);
  expect_chunks(ChunkMap(call_of(Collective::reduce_scatter), 4).sources(2, 0), 0, 4, 2);
  expect_chunks(ChunkMap(call_of(Collective::broadcast, 3), 4).sources(2, 0), 3, 4, 0);
  expect_chunks(ChunkMap(call_of(Collective::all_gather), 4).sources(2, 1), 1, 2, 0);
  expect_chunks(ChunkMap(call_of(Collective::all_to_all), 4).sources(2, 1), 1, 2, 2);
}

// Counts each chunk that a rank receives, over all sets of destinations.
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

TEST(ChunkMap, ASetOfDestinationsSharesItsSources) {
  for (const int ranks : {1, 2, 5}) {
    expect_all_destinations_once(call_of(Collective::all_reduce), ranks);
    expect_all_destinations_once(call_of(Collective::reduce, ranks - 1), ranks);
    expect_all_destinations_once(call_of(Collective::reduce_scatter), ranks);
    expect_all_destinations_once(call_of(Collective::broadcast, 0), ranks);
    expect_all_destinations_once(call_of(Collective::all_gather), ranks);
  }
}

}  // namespace
}  // namespace hccl::node
