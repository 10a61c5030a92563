// SPDX-License-Identifier: Apache-2.0
// Reductions of single elements, as plainly as they can be written: what the kernels are compared
// with, bit by bit.
#pragma once

#include <hccl_types.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

namespace hccl::reduce::reference {

template <class To, class From>
To bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

using Bytes = std::vector<std::byte>;

inline const float kNaN = bits<float>(std::uint32_t{0x7FC00000});

inline float sum(float a, float b) { return std::isnan(a + b) ? kNaN : a + b; }

inline float min(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return kNaN;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

inline float max(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return kNaN;
  if (a == b) return std::signbit(a) ? b : a;
  return a < b ? b : a;
}

inline std::int32_t sum(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
}
inline std::int32_t min(std::int32_t a, std::int32_t b) { return a < b ? a : b; }
inline std::int32_t max(std::int32_t a, std::int32_t b) { return a < b ? b : a; }

template <class T>
T apply(hcclRedOp_t operation, T a, T b) {
  if (operation == hcclSum) return sum(a, b);
  return operation == hcclMin ? min(a, b) : max(a, b);
}

inline float from_bfloat16(std::uint16_t value) {
  return bits<float>(static_cast<std::uint32_t>(value) << 16);
}

// By the definition of rounding to nearest, ties to even: of the two neighbours in bfloat16, take
// the closer one, else the even one.
inline std::uint16_t to_bfloat16(float value) {
  const auto word = bits<std::uint32_t>(value);
  const auto toward_zero = static_cast<std::uint16_t>(word >> 16);
  if (std::isnan(value)) return 0x7FC0;
  const std::uint32_t rest = word & 0xFFFF;
  const bool up = rest > 0x8000 || (rest == 0x8000 && toward_zero % 2 == 1);
  return static_cast<std::uint16_t>(toward_zero + (up ? 1 : 0));
}

inline std::size_t element_bytes(hcclDataType_t type) { return type == hcclBfloat16 ? 2 : 4; }

template <class T>
T element(const Bytes& data, std::size_t index) {
  T value;
  std::memcpy(&value, data.data() + index * sizeof value, sizeof value);
  return value;
}

// One element of every source, folded in the order of `order`.
inline std::uint32_t fold(hcclDataType_t type, hcclRedOp_t operation,
                          const std::vector<Bytes>& sources, const std::vector<std::size_t>& order,
                          std::size_t index) {
  const auto read = [&](std::size_t s) {
    return type == hcclFloat32 ? element<float>(sources[s], index)
                               : from_bfloat16(element<std::uint16_t>(sources[s], index));
  };
  if (type == hcclInt32) {
    auto result = element<std::int32_t>(sources[order[0]], index);
    for (std::size_t i = 1; i < order.size(); ++i) {
      result = apply(operation, result, element<std::int32_t>(sources[order[i]], index));
    }
    return bits<std::uint32_t>(result);
  }
  if (order.size() == 1) {  // nothing to fold: the bits themselves
    return type == hcclFloat32 ? element<std::uint32_t>(sources[order[0]], index)
                               : element<std::uint16_t>(sources[order[0]], index);
  }
  float result = read(order[0]);
  for (std::size_t i = 1; i < order.size(); ++i) {
    result = apply(operation, result, read(order[i]));
  }
  return type == hcclFloat32 ? bits<std::uint32_t>(result) : to_bfloat16(result);
}

// What the kernels are fed: kMostSources of kMostCount elements.
constexpr std::size_t kMostSources = 16;
constexpr std::size_t kMostCount = 9000;

enum class Values { ordinary, special };

inline std::vector<std::size_t> rank_order(std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

// Any sign and mantissa with exponents -20..20; or, often, what needs care.
inline std::uint32_t random_float(std::mt19937& random, Values values) {
  static constexpr std::array<std::uint32_t, 16> kSpecial = {
      0x00000000, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000,
      0x7F810001, 0xFFA54321, 0x7FFFFFFF, 0x00010000, 0x80010000, 0x007FFFFF,
      0x807F0000, 0x7F7FFFFF, 0xFF7F0000, 0x00800000};
  if (values == Values::special && random() % 3 == 0) {
    return kSpecial[random() % kSpecial.size()];
  }
  const auto exponent = static_cast<std::uint32_t>(127 - 20 + random() % 41);
  return (static_cast<std::uint32_t>(random()) & 0x807FFFFF) | exponent << 23;
}

inline std::vector<Bytes> random_sources(hcclDataType_t type, Values values) {
  std::mt19937 random(20240607);
  const std::size_t size = element_bytes(type);
  std::vector<Bytes> sources(kMostSources, Bytes(kMostCount * size));
  for (Bytes& source : sources) {
    for (std::size_t i = 0; i < kMostCount; ++i) {
      std::uint32_t word =
          type == hcclInt32 ? static_cast<std::uint32_t>(random()) : random_float(random, values);
      if (type == hcclBfloat16) word >>= 16;
      std::memcpy(source.data() + i * size, &word, size);
    }
  }
  return sources;
}

inline Bytes expected(hcclDataType_t type, hcclRedOp_t operation, const std::vector<Bytes>& sources,
                      const std::vector<std::size_t>& order) {
  const std::size_t size = element_bytes(type);
  Bytes result(kMostCount * size);
  for (std::size_t i = 0; i < kMostCount; ++i) {
    const std::uint32_t word = fold(type, operation, sources, order, i);
    std::memcpy(result.data() + i * size, &word, size);
  }
  return result;
}

}  // namespace hccl::reduce::reference
