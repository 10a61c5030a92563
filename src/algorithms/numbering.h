// SPDX-License-Identifier: Apache-2.0
// Modular arithmetic on ranks and chunks.
#pragma once

#include "schedule/shape.h"

namespace hccl::algorithms {

// Returns `value` modulo `count`. `value` must be at least -`count`.
[[nodiscard]] constexpr std::int32_t circular(std::int32_t value, std::int32_t count) {
  return (value + count) % count;
}
// Returns the rank at `distance` from the shape's rank. `distance` must be at least -rank_count.
[[nodiscard]] inline std::int32_t rank_at(const schedule::Shape& shape, std::int32_t distance) {
  return circular(shape.rank + distance, shape.rank_count);
}
// Returns the number of the chunk that belongs to a rank.
[[nodiscard]] constexpr std::uint32_t chunk_of(std::int32_t rank) {
  return static_cast<std::uint32_t>(rank);
}

// Convert between a rank and its place: the rank's distance from the root, modulo rank_count.
[[nodiscard]] inline std::int32_t place_after_root(const schedule::Shape& shape) {
  return rank_at(shape, -shape.root);
}
[[nodiscard]] inline std::int32_t rank_of_place(const schedule::Shape& shape, std::int32_t place) {
  return circular(shape.root + place, shape.rank_count);
}

}  // namespace hccl::algorithms
