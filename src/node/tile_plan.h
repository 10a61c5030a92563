// SPDX-License-Identifier: Apache-2.0
// Divides a collective inside a node into tiles {source ranks} -> {destination ranks}, and maps a
// tile's number to the bytes that it covers.
#pragma once

#include "call/collective_call.h"
#include "node/chunk_map.h"

#include <cstddef>
#include <cstdint>

namespace hccl::node {

// A range of bytes of one chunk. All-gather and reduce-scatter have a chunk per rank. All-to-all
// has one per pair of ranks; a tile exchanges the data of both, so that the call may be in place. A
// tile can combine short chunks of an all-to-all: it then exchanges the data of rank `chunk` with
// that of the ranks in [first_peer, end_peer). Other collectives have one chunk.
struct Tile {
  int chunk = 0;
  std::uint64_t first_byte = 0;  // in the chunk
  std::uint64_t bytes = 0;
  int first_peer = 0;  // of an all-to-all
  int end_peer = 0;
};

class TilePlan {
 public:
  // Measured: with tiles of 64 KiB, operations of 1 MiB or more take up to 20% longer. Tiles of an
  // all-to-all are shorter, because an in-place exchange copies them to a bounce buffer first.
  static constexpr std::uint64_t kMaxTileBytes = 256 << 10;
  static constexpr std::uint64_t kMaxPairTileBytes = 64 << 10;
  static constexpr std::uint64_t kMinTileBytes = 4 << 10;

  // Plans a slice of `chunk_bytes` of every chunk, or whole chunks. The plan is the same on all
  // ranks for the same call and number of cores.
  TilePlan(const CollectiveCall& call, int ranks, int cores, std::uint64_t chunk_bytes);

  [[nodiscard]] std::uint32_t tiles() const { return tiles_per_chunk_ * chunks_; }
  [[nodiscard]] Tile tile(std::uint32_t number) const;

  // Maps the sources of a tile's chunk to its destinations.
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
