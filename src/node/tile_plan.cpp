// SPDX-License-Identifier: Apache-2.0
// Tile sizes and positions.
#include "node/tile_plan.h"

#include "reduce/reduce.h"

#include <algorithm>

namespace hccl::node {
namespace {

constexpr std::uint64_t kLine = 64;
constexpr std::uint64_t kTilesPerCore = 2;  // so that a core that comes late still finds work

std::uint64_t choose_tile_bytes(std::uint64_t bytes, int cores) {
  const std::uint64_t share = bytes / (static_cast<std::uint64_t>(cores) * kTilesPerCore);
  return std::clamp(share / kLine * kLine, TilePlan::kShortestTile, TilePlan::kLongestTile);
}

}  // namespace

TilePlan::TilePlan(const CollectiveCall& call, int ranks, int cores)
    : collective_(call.collective),
      chunks_(call.collective == Collective::all_gather ||
                      call.collective == Collective::reduce_scatter
                  ? static_cast<std::uint32_t>(ranks)
                  : 1),
      chunk_bytes_(call.count * reduce::element_size(call.data_type())),
      tile_bytes_(choose_tile_bytes(chunk_bytes_ * chunks_, cores)),
      tiles_per_chunk_(static_cast<std::uint32_t>((chunk_bytes_ + tile_bytes_ - 1) / tile_bytes_)) {
}

Tile TilePlan::tile(std::uint32_t number) const {
  const std::uint64_t first = number % tiles_per_chunk_ * tile_bytes_;
  return {static_cast<int>(number / tiles_per_chunk_), first,
          std::min(tile_bytes_, chunk_bytes_ - first)};
}

bool TilePlan::stores_to(std::uint32_t number, int rank) const {
  return collective_ != Collective::reduce_scatter || tile(number).chunk == rank;
}

}  // namespace hccl::node
