// SPDX-License-Identifier: Apache-2.0
// How the elements of each type are stored, accumulated and loaded.
#pragma once

#include <bit>
#include <cstdint>

namespace hccl_perf {

inline float from_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// Rounds to nearest, ties to even. The values here are never NaN.
inline std::uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

// Exponents of half and float count from different ends, 112 apart, but for infinity and NaN.
inline float from_half(std::uint16_t half) {
  const std::uint32_t magnitude = half & 0x7FFFU;
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112F;
  const std::uint32_t special = magnitude >= 0x7C00U ? 0x7F800000U : 0U;
  const auto value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | special);
  return (half >> 15) != 0 ? -value : value;
}

inline std::uint16_t to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  std::uint32_t half = 0x7C00;  // infinity
  if (magnitude < 0x38800000U) {
    // In units of the smallest half, 2^-24, which adding 0.5 rounds to.
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3F000000U;
  } else if (magnitude < 0x47800000U) {
    half = (magnitude - 0x38000000U + 0xFFFU + (magnitude >> 13 & 1U)) >> 13;
  }
  return static_cast<std::uint16_t>(half | bits >> 31 << 15);
}

template <class Value>
struct Plain {
  using Stored = Value;
  using Accumulator = Value;
  static Accumulator load(Stored value) { return value; }
  static Stored store(Accumulator value) { return value; }
};
struct Bfloat16 {
  using Stored = std::uint16_t;
  using Accumulator = float;
  static Accumulator load(Stored value) { return from_bfloat16(value); }
  static Stored store(Accumulator value) { return to_bfloat16(value); }
};
struct Float16 {
  using Stored = std::uint16_t;
  using Accumulator = float;
  static Accumulator load(Stored value) { return from_half(value); }
  static Stored store(Accumulator value) { return to_half(value); }
};

}  // namespace hccl_perf
