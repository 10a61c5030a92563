// SPDX-License-Identifier: Apache-2.0
// Defines how the elements of each type are stored, accumulated, rounded and sampled.
#pragma once

#include <hccl_types.h>

#include <bit>
#include <cstdint>

namespace hccl_perf {

inline float from_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// Rounds to nearest, ties to even. The value must not be NaN.
inline std::uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

// Converts a half to float. The exponent biases of the two formats differ by 112. Infinity and NaN
// have the largest exponent in both formats.
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
    // Adding 0.5 rounds the magnitude to a multiple of 2^-24, the smallest positive half.
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3F000000U;
  } else if (magnitude < 0x47800000U) {
    half = (magnitude - 0x38000000U + 0xFFFU + (magnitude >> 13 & 1U)) >> 13;
  }
  return static_cast<std::uint16_t>(half | bits >> 31 << 15);
}

// The precision and range of a floating-point type: the largest relative error of one rounding, and
// three binary exponents. Finite values are below 2^above, normal values are at least 2^normal, and
// 2^smallest is the smallest positive value.
struct Format {
  double roundoff;
  int above;
  int normal;
  int smallest;
};

// Each form has load() and store(), which convert between elements and accumulators, and sample(),
// which makes an element from a random number. A floating-point sample has a random sign and a
// random mantissa. Its exponent is a constant plus a few random bits, so that no sum overflows.
template <class Value>
struct Plain {
  using Stored = Value;
  using Accumulator = Value;
  static Accumulator load(Stored value) { return value; }
  static Stored store(Accumulator value) { return value; }
  static Stored sample(std::uint64_t random) { return static_cast<Stored>(random); }
};
struct Float : Plain<float> {
  static constexpr Format kFormat{0x1p-24, 128, -126, -149};
  // Five random bits are added to the exponent of 2^-16.
  static std::uint32_t sample_bits(std::uint64_t random) {
    return (static_cast<std::uint32_t>(random) & 0x8FFFFFFFU) + (111U << 23);
  }
  static float sample(std::uint64_t random) { return std::bit_cast<float>(sample_bits(random)); }
};
struct Double : Plain<double> {
  static constexpr Format kFormat{0x1p-53, 1024, -1022, -1074};
  static double sample(std::uint64_t random) {
    return std::bit_cast<double>((random & 0x81FFFFFFFFFFFFFF) + (std::uint64_t{1007} << 52));
  }
};
struct Bfloat16 {
  using Stored = std::uint16_t;
  using Accumulator = float;
  static constexpr Format kFormat{0x1p-8, 128, -126, -133};
  static Accumulator load(Stored value) { return from_bfloat16(value); }
  static Stored store(Accumulator value) { return to_bfloat16(value); }
  static Stored sample(std::uint64_t random) {
    return static_cast<Stored>(Float::sample_bits(random) >> 16);
  }
};
struct Float16 {
  using Stored = std::uint16_t;
  using Accumulator = float;
  static constexpr Format kFormat{0x1p-11, 16, -14, -24};
  static Accumulator load(Stored value) { return from_half(value); }
  static Stored store(Accumulator value) { return to_half(value); }
  static Stored sample(std::uint64_t random) {
    return static_cast<Stored>((random & 0x9FFFU) + (8U << 10));
  }
};

template <class Form>
concept Floating = requires {
  Form::kFormat;
};

// Returns visit(form) for the form of the type.
template <class Visit>
auto with_form(hcclDataType_t type, const Visit& visit) {
  switch (type) {
    case hcclInt8:
      return visit(Plain<std::int8_t>());
    case hcclUint8:
      return visit(Plain<std::uint8_t>());
    case hcclInt32:
      return visit(Plain<std::int32_t>());
    case hcclUint32:
      return visit(Plain<std::uint32_t>());
    case hcclInt64:
      return visit(Plain<std::int64_t>());
    case hcclUint64:
      return visit(Plain<std::uint64_t>());
    case hcclFloat16:
      return visit(Float16());
    case hcclFloat64:
      return visit(Double());
    case hcclBfloat16:
      return visit(Bfloat16());
    default:
      return visit(Float());
  }
}

}  // namespace hccl_perf
