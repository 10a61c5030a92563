// SPDX-License-Identifier: Apache-2.0
// Multiplicative hashing of numbers, for tables whose size is a power of two.
#pragma once

#include <cstdint>

namespace hccl {

// Returns a hash of `bits` bits; `bits` must be from 1 to 63. Unlike a plain remainder, spreads out
// keys that are multiples of large powers of two, such as buffer addresses.
[[nodiscard]] constexpr std::uint64_t hash_index(std::uint64_t key, unsigned bits) noexcept {
  return key * 0x9e3779b97f4a7c15u >> (64 - bits);
}

}  // namespace hccl
