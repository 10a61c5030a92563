// SPDX-License-Identifier: Apache-2.0
#include "schedule/shape.h"

std::size_t std::hash<hccl::schedule::Shape>::operator()(
    const hccl::schedule::Shape& shape) const noexcept {
  std::uint64_t state = 0;
  const auto mix = [&state](std::uint64_t value) {
    state = (state ^ value) * 0x9E3779B97F4A7C15ULL;
    state ^= state >> 32;
  };
  const auto word = [](std::int32_t value) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(value));
  };
  mix(static_cast<std::uint64_t>(shape.collective) << 1 | (shape.in_place ? 1 : 0));
  mix(word(shape.rank) << 32 | word(shape.rank_count));
  mix(word(shape.root) << 32 | shape.channel);
  mix(std::uint64_t{shape.channels} << 32 | shape.pipeline);
  return state;
}
