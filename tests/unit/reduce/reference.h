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
#include <limits>
#include <numeric>
#include <random>
#include <type_traits>
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

template <class T>
T canonical(T value) {
  return std::isnan(value) ? std::numeric_limits<T>::quiet_NaN() : value;
}

// Of two numbers of one type: -0 is less than +0, any NaN gives a NaN.
template <class T>
T extremum(T a, T b, bool smaller) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return canonical(a + b);
    if (a == b) return std::signbit(a) == smaller ? a : b;
  }
  return (a < b) == smaller ? a : b;
}

// Sums and products of integers wrap: taken in 64 unsigned bits, of which the type keeps the low.
template <class T>
T apply(hcclRedOp_t operation, T a, T b) {
  if (operation == hcclMin || operation == hcclMax) return extremum(a, b, operation == hcclMin);
  if constexpr (std::is_floating_point_v<T>) {
    return canonical(operation == hcclProd ? a * b : a + b);
  } else {
    const auto left = static_cast<std::uint64_t>(a);
    const auto right = static_cast<std::uint64_t>(b);
    return static_cast<T>(operation == hcclProd ? left * right : left + right);
  }
}

template <class T>
T average(T sum, std::size_t count) {
  if constexpr (std::is_floating_point_v<T>) {
    return canonical(sum * (T{1} / static_cast<T>(count)));
  } else {
    return static_cast<T>(sum / static_cast<T>(count));
  }
}

inline float from_bfloat16(std::uint16_t value) {
  return bits<float>(static_cast<std::uint32_t>(value) << 16);
}

// By the definition of the format: sign, 5 bits of exponent, 10 of mantissa.
inline float from_half(std::uint16_t value) {
  const int exponent = value >> 10 & 31;
  const int mantissa = value & 1023;
  const float sign = (value >> 15) != 0 ? -1.0F : 1.0F;
  if (exponent == 31) return mantissa == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  return sign * std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
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

// The same for half: in units of the last place of its binade, 2^-24 for the smallest.
inline std::uint16_t to_half(float value) {
  if (std::isnan(value)) return 0x7E00;
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const double magnitude = std::fabs(static_cast<double>(value));
  if (magnitude >= 65520.0) return static_cast<std::uint16_t>(sign | 0x7C00);
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  const int unit = magnitude < 0x1p-14 ? -24 : exponent - 11;
  const double places = std::ldexp(magnitude, -unit);
  double whole = std::floor(places);
  const double rest = places - whole;
  if (rest > 0.5 || (rest == 0.5 && std::fmod(whole, 2.0) == 1.0)) whole += 1.0;
  // The mantissa's leading one adds to the exponent, and a carry does so once more.
  return static_cast<std::uint16_t>(sign + static_cast<int>(whole) + (unit + 24) * 1024);
}

inline std::size_t element_bytes(hcclDataType_t type) {
  constexpr std::array<std::size_t, hcclNumTypes> kBytes = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return kBytes[type];
}

inline bool is_float(hcclDataType_t type) {
  return type == hcclFloat16 || type == hcclFloat32 || type == hcclFloat64 || type == hcclBfloat16;
}

template <class T>
T element(const Bytes& data, std::size_t index) {
  T value;
  std::memcpy(&value, data.data() + index * sizeof value, sizeof value);
  return value;
}

template <class T, class Read>
T fold_as(hcclRedOp_t operation, const std::vector<std::size_t>& order, Read read) {
  T result = read(order[0]);
  for (std::size_t i = 1; i < order.size(); ++i) result = apply(operation, result, read(order[i]));
  return operation == hcclAvg ? average(result, order.size()) : result;
}

template <class T>
std::uint64_t fold_plainly(hcclRedOp_t operation, const std::vector<Bytes>& sources,
                           const std::vector<std::size_t>& order, std::size_t index) {
  const T result =
      fold_as<T>(operation, order, [&](std::size_t s) { return element<T>(sources[s], index); });
  std::uint64_t word = 0;
  std::memcpy(&word, &result, sizeof result);
  return word;
}

// One element of every source, folded in the order of `order`: its bits, low bytes first.
inline std::uint64_t fold(hcclDataType_t type, hcclRedOp_t operation,
                          const std::vector<Bytes>& sources, const std::vector<std::size_t>& order,
                          std::size_t index) {
  if (order.size() == 1) {  // nothing to fold: the bits themselves
    std::uint64_t word = 0;
    const std::size_t size = element_bytes(type);
    std::memcpy(&word, sources[order[0]].data() + index * size, size);
    return word;
  }
  const auto read = [&](auto widen) {
    return [&, widen](std::size_t s) { return widen(element<std::uint16_t>(sources[s], index)); };
  };
  switch (type) {
    case hcclInt8:
      return fold_plainly<std::int8_t>(operation, sources, order, index);
    case hcclUint8:
      return fold_plainly<std::uint8_t>(operation, sources, order, index);
    case hcclInt32:
      return fold_plainly<std::int32_t>(operation, sources, order, index);
    case hcclUint32:
      return fold_plainly<std::uint32_t>(operation, sources, order, index);
    case hcclInt64:
      return fold_plainly<std::int64_t>(operation, sources, order, index);
    case hcclUint64:
      return fold_plainly<std::uint64_t>(operation, sources, order, index);
    case hcclFloat64:
      return fold_plainly<double>(operation, sources, order, index);
    case hcclFloat16:
      return to_half(fold_as<float>(operation, order, read(from_half)));
    case hcclBfloat16:
      return to_bfloat16(fold_as<float>(operation, order, read(from_bfloat16)));
    default:
      return fold_plainly<float>(operation, sources, order, index);
  }
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

// The same for double: the bits of random_float at the top, random ones below.
inline std::uint64_t random_double(std::mt19937& random, Values values) {
  const auto value = bits<float>(random_float(random, values));
  const auto word = bits<std::uint64_t>(static_cast<double>(value));
  return std::isfinite(value) && value != 0 ? word | (random() & 0x1FFFFFFF) : word;
}

// Any bits: half has few numbers, and a third of random ones are such as need care.
inline std::uint16_t random_half(std::mt19937& random, Values values) {
  const auto word = static_cast<std::uint16_t>(random());
  const bool is_finite = (word & 0x7C00) != 0x7C00;
  return values == Values::special || is_finite ? word : static_cast<std::uint16_t>(word & 0xBFFF);
}

inline std::uint64_t random_word(hcclDataType_t type, std::mt19937& random, Values values) {
  if (type == hcclFloat16) return random_half(random, values);
  if (type == hcclFloat64) return random_double(random, values);
  if (type == hcclBfloat16) return random_float(random, values) >> 16;
  if (type == hcclFloat32) return random_float(random, values);
  return static_cast<std::uint64_t>(random()) << 32 | random();
}

inline std::vector<Bytes> random_sources(hcclDataType_t type, Values values) {
  std::mt19937 random(20240607);
  const std::size_t size = element_bytes(type);
  std::vector<Bytes> sources(kMostSources, Bytes(kMostCount * size));
  for (Bytes& source : sources) {
    for (std::size_t i = 0; i < kMostCount; ++i) {
      const std::uint64_t word = random_word(type, random, values);
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
    const std::uint64_t word = fold(type, operation, sources, order, i);
    std::memcpy(result.data() + i * size, &word, size);
  }
  return result;
}

inline constexpr std::array kTypes = {hcclInt8,    hcclUint8,   hcclInt32,   hcclUint32,
                                      hcclInt64,   hcclUint64,  hcclFloat16, hcclFloat32,
                                      hcclFloat64, hcclBfloat16};
inline constexpr std::array kOperations = {hcclSum, hcclProd, hcclMin, hcclMax, hcclAvg};

}  // namespace hccl::reduce::reference
