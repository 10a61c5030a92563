// SPDX-License-Identifier: Apache-2.0
// Records in 32 bits which tiles of an operation are claimed. With at most 32 tiles, each bit
// stands for a tile. Otherwise tiles are claimed in order, and the bits hold the number of claimed
// tiles.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>

namespace hccl::node {

class TileClaims {
 public:
  TileClaims(std::uint32_t claimed, std::uint32_t tiles) : claimed_(claimed), tiles_(tiles) {}

  struct Claim {
    std::uint32_t tile;
    std::uint32_t claimed;  // including this tile
  };
  // Returns the first free tile at or after the start of the worker's share of the tiles, or else
  // the first free tile. A worker thus tends to get the same tiles in each call, so the tiles' data
  // may still be in the worker's nearest cache. With more than 32 tiles, returns them in order and
  // ignores the worker's share. Returns nothing if all tiles are claimed.
  [[nodiscard]] std::optional<Claim> next(std::uint32_t worker, std::uint32_t workers) const {
    if (tiles_ > kBits) {
      if (claimed_ >= tiles_) return std::nullopt;
      return Claim{claimed_, claimed_ + 1};
    }
    const std::uint32_t free = ~claimed_ & (~0u >> (kBits - tiles_));
    if (free == 0) return std::nullopt;
    const std::uint32_t from = free & ~0u << worker % workers * tiles_ / workers;
    const auto tile = static_cast<std::uint32_t>(std::countr_zero(from != 0 ? from : free));
    return Claim{tile, claimed_ | 1u << tile};
  }

 private:
  static constexpr std::uint32_t kBits = 32;

  std::uint32_t claimed_;
  std::uint32_t tiles_;  // at least one
};

}  // namespace hccl::node
