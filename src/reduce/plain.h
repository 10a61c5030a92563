// SPDX-License-Identifier: Apache-2.0
// The arithmetic of each type and reduction on single elements, for averages across nodes
// (average.cpp) and, on processors that support no vector kernel, for all reductions. The results
// are bitwise identical to those of the vector kernels.
#pragma once

#include "reduce/kernels.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace hccl::reduce::plain {

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Converts elements to accumulators and back. Integers are summed and multiplied as unsigned types
// that are too wide to be promoted to int.
template <class T>
struct Integer {
  static constexpr std::size_t kBytes = sizeof(T);
  using Accumulator = std::conditional_t<(sizeof(T) < 8), std::uint32_t, std::uint64_t>;

  static Accumulator read(const std::byte* from) { return static_cast<Accumulator>(load<T>(from)); }
  static void write(Accumulator value, std::byte* to) {
    const T element = static_cast<T>(value);
    std::memcpy(to, &element, sizeof element);
  }
  static bool keeps(Accumulator a, Accumulator b, bool smaller) {
    return (static_cast<T>(a) < static_cast<T>(b)) == smaller;
  }
  // Divides in 64 bits, because `count` may not fit the type.
  static Accumulator average(Accumulator sum, std::size_t count) {
    using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    return static_cast<Accumulator>(Wide{static_cast<T>(sum)} / static_cast<Wide>(count));
  }
};

template <class T>
struct Real {
  using Accumulator = T;

  // Returns whether the minimum (if `smaller`) or the maximum of `a` and `b` is `a` rather than
  // `b`. -0 is less than +0. A NaN is both minimum and maximum. If the operands are identical, may
  // return either value.
  static bool keeps(T a, T b, bool smaller) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a);
    if (a == b) return std::signbit(a) == smaller;
    return (a < b) == smaller;
  }
  static T average(T sum, std::size_t count) { return sum * (T{1} / static_cast<T>(count)); }
};

template <class T>
struct Float : Real<T> {
  static constexpr std::size_t kBytes = sizeof(T);
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

  static T read(const std::byte* from) { return load<T>(from); }
  static void write(T value, std::byte* to) {
    constexpr Bits kNaN = sizeof(T) == 4 ? 0x7FC00000 : static_cast<Bits>(0x7FF8000000000000);
    const Bits bits = std::isnan(value) ? kNaN : std::bit_cast<Bits>(value);
    std::memcpy(to, &bits, sizeof bits);
  }
};

struct Bfloat16 : Real<float> {
  static constexpr std::size_t kBytes = 2;

  static float read(const std::byte* from) {
    return std::bit_cast<float>(std::uint32_t{load<std::uint16_t>(from)} << 16);
  }
  static void write(float value, std::byte* to) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
    const auto element = static_cast<std::uint16_t>(std::isnan(value) ? 0x7FC0 : rounded);
    std::memcpy(to, &element, sizeof element);
  }
};

struct Float16 : Real<float> {
  static constexpr std::size_t kBytes = 2;

  // Moves exponent and mantissa to their positions in a float, and multiplies by 2^112 because the
  // exponent biases differ by 112.
  static float read(const std::byte* from) {
    const std::uint32_t half = load<std::uint16_t>(from);
    const std::uint32_t magnitude = half & 0x7FFF;
    const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112F;
    const std::uint32_t top = magnitude < 0x7C00 ? 0 : 0x7F800000;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | top | (half >> 15) << 31);
  }
  static void write(float value, std::byte* to) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = bits & 0x7FFFFFFF;
    std::uint32_t half = 0x7C00;  // infinity
    if (magnitude > 0x7F800000) {
      half = 0x7E00;
    } else if (magnitude < 0x38800000) {  // adding 0.5 rounds to a multiple of 2^-24
      half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3F000000;
    } else if (magnitude < 0x47800000) {
      half = (magnitude - 0x38000000 + 0xFFF + (magnitude >> 13 & 1)) >> 13;
    }
    const bool negative = bits >> 31 != 0 && !std::isnan(value);
    const auto element = static_cast<std::uint16_t>(half | (negative ? 0x8000 : 0));
    std::memcpy(to, &element, sizeof element);
  }
};

// Calls `visit` with an object of the class that implements the arithmetic of the data type. Does
// nothing for hcclNumTypes.
template <class Visit>
void with_element(hcclDataType_t type, const Visit& visit) {
  switch (type) {
    case hcclInt8:
      return visit(Integer<std::int8_t>());
    case hcclUint8:
      return visit(Integer<std::uint8_t>());
    case hcclInt32:
      return visit(Integer<std::int32_t>());
    case hcclUint32:
      return visit(Integer<std::uint32_t>());
    case hcclInt64:
      return visit(Integer<std::int64_t>());
    case hcclUint64:
      return visit(Integer<std::uint64_t>());
    case hcclFloat16:
      return visit(Float16());
    case hcclFloat32:
      return visit(Float<float>());
    case hcclFloat64:
      return visit(Float<double>());
    case hcclBfloat16:
      return visit(Bfloat16());
    case hcclNumTypes:
      return;
  }
}

template <class Element, hcclRedOp_t kOperation>
struct Fold {
  static constexpr std::size_t kElementBytes = Element::kBytes;
  using Accumulator = typename Element::Accumulator;

  static Accumulator element(const std::byte* const* sources, std::size_t count, std::size_t at) {
    Accumulator result = Element::read(sources[0] + at);
    for (std::size_t s = 1; s < count; ++s) {
      const Accumulator next = Element::read(sources[s] + at);
      if constexpr (kOperation == hcclProd) {
        result *= next;
      } else if constexpr (kOperation == hcclEmulationBitAnd) {
        result &= next;
      } else if constexpr (kOperation == hcclEmulationBitOr) {
        result |= next;
      } else if constexpr (kOperation == hcclEmulationBitXor) {
        result ^= next;
      } else if constexpr (kOperation == hcclMin || kOperation == hcclMax) {
        result = Element::keeps(result, next, kOperation == hcclMin) ? result : next;
      } else {
        result += next;
      }
    }
    return kOperation == hcclAvg ? Element::average(result, count) : result;
  }

  static void block(const std::byte* const* sources, std::size_t source_count, std::size_t begin,
                    std::size_t end, std::byte* out) {
    for (std::size_t at = begin; at < end; at += kElementBytes)
      Element::write(element(sources, source_count, at), out + (at - begin));
  }

  static void range(const FoldOperands& operands, std::size_t begin, std::size_t end) {
    for (std::size_t at = begin; at < end; at += kElementBytes) {
      const Accumulator result = element(operands.sources, operands.source_count, at);
      for (std::size_t d = 0; d < operands.destination_count; ++d)
        Element::write(result, operands.destinations[d] + at);
    }
  }
};

template <class Element, hcclRedOp_t kOperation>
inline constexpr FoldKernel kKernel{Element::kBytes, Fold<Element, kOperation>::block,
                                    Fold<Element, kOperation>::block,
                                    Fold<Element, kOperation>::range};

template <class Element, hcclRedOp_t... kBitwise>
inline constexpr FoldRow kRow{{kKernel<Element, hcclSum>, kKernel<Element, hcclProd>,
                               kKernel<Element, hcclMin>, kKernel<Element, hcclMax>,
                               kKernel<Element, hcclAvg>, kKernel<Element, kBitwise>...}};

template <class T>
inline constexpr FoldRow kIntegerRow =
    kRow<Integer<T>, hcclEmulationBitAnd, hcclEmulationBitOr, hcclEmulationBitXor>;

}  // namespace hccl::reduce::plain
