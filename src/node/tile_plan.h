// SPDX-License-Identifier: Apache-2.0
// Divides an intra-node collective into tiles, and maps each tile number to the bytes that the tile
// covers.
#pragma once

#include "call/collective_call.h"
#include "node/chunk_map.h"

#include <cstddef>
#include <cstdint>

namespace hccl::node {

// A range of bytes of one chunk. All-gather and reduce-scatter have a chunk per rank; other
// collectives have one chunk. In an all-to-all, `chunk` is a rank instead: the tile exchanges data
// between that rank and each rank in [first_peer, end_peer), in both directions, so that the call
// may be in place. A tile has several peers only if the chunks are short.
struct Tile {
  int chunk = 0;
  std::uint64_t first_byte = 0;  // in the chunk
  std::uint64_t bytes = 0;
  int first_peer = 0;  // in an all-to-all
  int end_peer = 0;
};

class TilePlan {
 public:
  // With tiles of 64 KiB, operations of 1 MiB or more took up to 20% longer. Tiles of an all-to-all
  // are shorter, because an in-place exchange copies each tile to a bounce buffer first.
  static constexpr std::uint64_t kMaxTileBytes = 256 << 10;
  static constexpr std::uint64_t kMaxPairTileBytes = 64 << 10;
  static constexpr std::uint64_t kMinTileBytes = 4 << 10;

  // Plans `chunk_bytes` bytes of every chunk: one slice, or the whole chunk. `parts`: the number of
  // nearly equal groups into which the tiles can be divided, unless the tiles would then be shorter
  // than kMinTileBytes. The plan is the same on all ranks for the same arguments.
  TilePlan(const CollectiveCall& call, int ranks, int parts, std::uint64_t chunk_bytes);

  [[nodiscard]] std::uint32_t tiles() const { return tiles_per_chunk_ * chunks_; }
  [[nodiscard]] Tile tile(std::uint32_t number) const;

  // Returns the map from the sources of a tile's chunk to its destinations.
  [[nodiscard]] const ChunkMap& map() const { return map_; }
  // Returns whether the tile's result goes to `rank`'s memory.
  [[nodiscard]] bool stores_to(std::uint32_t number, int rank) const;

 private:
  [[nodiscard]] Tile pair_tile(std::uint32_t number) const;

  Collective collective_;
  int ranks_;
  ChunkMap map_;
  std::uint64_t chunk_bytes_;
  bool whole_rows_;  // an all-to-all of short chunks
  std::uint32_t chunks_;
  std::uint64_t tile_bytes_;
  std::uint32_t tiles_per_chunk_;
};

}  // namespace hccl::node
