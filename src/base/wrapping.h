// SPDX-License-Identifier: Apache-2.0
// Comparison of counters that wrap.
#pragma once

#include <cstdint>

namespace hccl {

// Returns whether counter value `a` comes before `b`. The values must be less than 2^31 apart.
[[nodiscard]] constexpr bool precedes(std::uint32_t a, std::uint32_t b) noexcept {
  return static_cast<std::int32_t>(a - b) < 0;
}

}  // namespace hccl
