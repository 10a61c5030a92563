// SPDX-License-Identifier: Apache-2.0
// Chooses the size of tiles and finds their positions.
#include "node/tile_plan.h"

#include <algorithm>

namespace hccl::node {
namespace {

constexpr std::uint64_t kLine = 64;
std::uint64_t choose_tile_bytes(Collective collective, std::uint64_t bytes, int parts) {
  const auto least = static_cast<std::uint64_t>(parts);
  const std::uint64_t max_bytes =
      collective == Collective::all_to_all ? TilePlan::kMaxPairTileBytes : TilePlan::kMaxTileBytes;
  const std::uint64_t tiles_per_part =
      std::max<std::uint64_t>((bytes + least * max_bytes - 1) / (least * max_bytes), 1);
  const std::uint64_t share = bytes / (least * tiles_per_part);
  return std::clamp(share / kLine * kLine, TilePlan::kMinTileBytes, max_bytes);
}

std::uint32_t number_of_chunks(Collective collective, int ranks, bool whole_rows) {
  const auto count = static_cast<std::uint32_t>(ranks);
  if (collective == Collective::all_gather || collective == Collective::reduce_scatter)
    return count;
  if (collective != Collective::all_to_all) return 1;
  return whole_rows ? count : count * (count + 1) / 2;
}

}  // namespace

TilePlan::TilePlan(const CollectiveCall& call, int ranks, int parts, std::uint64_t chunk_bytes)
    : collective_(call.collective),
      ranks_(ranks),
      map_(call, ranks),
      chunk_bytes_(chunk_bytes),
      whole_rows_(collective_ == Collective::all_to_all && chunk_bytes_ <= kMinTileBytes),
      chunks_(number_of_chunks(collective_, ranks, whole_rows_)),
      tile_bytes_(choose_tile_bytes(collective_, chunk_bytes_ * chunks_, parts)),
      tiles_per_chunk_(static_cast<std::uint32_t>((chunk_bytes_ + tile_bytes_ - 1) / tile_bytes_)) {
}

Tile TilePlan::tile(std::uint32_t number) const {
  if (collective_ == Collective::all_to_all) return pair_tile(number);
  const std::uint64_t first = number % tiles_per_chunk_ * tile_bytes_;
  return {static_cast<int>(number / tiles_per_chunk_), first,
          std::min(tile_bytes_, chunk_bytes_ - first)};
}

// Tiles follow the order of the pairs of ranks (0, 0), (0, 1) ... (0, n-1), (1, 1) ... (n-1, n-1).
// If whole_rows_, a tile covers all pairs with the same first rank.
Tile TilePlan::pair_tile(std::uint32_t number) const {
  auto chunk = static_cast<int>(number / tiles_per_chunk_);
  if (whole_rows_) return {chunk, 0, chunk_bytes_, chunk, ranks_};
  int row = 0;
  for (; chunk >= ranks_ - row; ++row) chunk -= ranks_ - row;
  const std::uint64_t first = number % tiles_per_chunk_ * tile_bytes_;
  return {row, first, std::min(tile_bytes_, chunk_bytes_ - first), row + chunk, row + chunk + 1};
}

bool TilePlan::stores_to(std::uint32_t number, int rank) const {
  const Tile stored = tile(number);
  if (collective_ != Collective::all_to_all) return map_.destinations(stored.chunk).has(rank);
  return stored.chunk == rank || (stored.first_peer <= rank && rank < stored.end_peer);
}

}  // namespace hccl::node
