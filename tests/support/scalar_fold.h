// SPDX-License-Identifier: Apache-2.0
// Reductions of single elements, as plainly as they can be written: what everything else is
// compared with, bit by bit. An element is a word that holds its bits, low bytes first.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include <hccl_emulation.h>

namespace hccl::test {

inline constexpr std::array kAllTypes = {hcclInt8,    hcclUint8,   hcclInt32,   hcclUint32,
                                         hcclInt64,   hcclUint64,  hcclFloat16, hcclFloat32,
                                         hcclFloat64, hcclBfloat16};
inline constexpr std::array kAllReductions = {hcclSum, hcclProd, hcclMin, hcclMax, hcclAvg};

inline constexpr std::array kBitReductions = {hcclEmulationBitAnd, hcclEmulationBitOr,
                                              hcclEmulationBitXor};

inline std::size_t size_of(hcclDataType_t type) {
  constexpr std::array<std::size_t, hcclNumTypes> kBytes = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return kBytes[type];
}

inline bool is_float(hcclDataType_t type) {
  return type == hcclFloat16 || type == hcclFloat32 || type == hcclFloat64 || type == hcclBfloat16;
}

// The bitwise ones come last.
inline std::vector<hcclRedOp_t> reductions_of(hcclDataType_t type) {
  std::vector<hcclRedOp_t> all(kAllReductions.begin(), kAllReductions.end());
  if (!is_float(type)) all.insert(all.end(), kBitReductions.begin(), kBitReductions.end());
  return all;
}

template <class To, class From>
To bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

template <class T>
T canonical(T value) {
  return std::isnan(value) ? std::numeric_limits<T>::quiet_NaN() : value;
}

// Compares two numbers of one type: -0 is less than +0, and any NaN gives a NaN.
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
    using Unsigned = std::make_unsigned_t<T>;
    const auto left = static_cast<std::uint64_t>(static_cast<Unsigned>(a));
    const auto right = static_cast<std::uint64_t>(static_cast<Unsigned>(b));
    if (operation == hcclEmulationBitAnd) return static_cast<T>(left & right);
    if (operation == hcclEmulationBitOr) return static_cast<T>(left | right);
    if (operation == hcclEmulationBitXor) return static_cast<T>(left ^ right);
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

// For an average between nodes: 16-bit floats are scaled down before they are added, and the sum is
// scaled back when it is divided.
inline float prescale_of(std::size_t sources) {
  float scale = 1.0F;
  while (1.0F / scale < static_cast<float>(sources)) scale /= 2;
  return scale;
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

template <class T>
T from_word(std::uint64_t word) {
  T value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

template <class T>
std::uint64_t to_word(T value) {
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  return word;
}

template <class Read>
auto fold_values(hcclRedOp_t operation, const std::vector<std::uint64_t>& words,
                 std::size_t sources, Read read) {
  auto result = read(words[0]);
  for (std::size_t i = 1; i < words.size(); ++i) result = apply(operation, result, read(words[i]));
  return operation == hcclAvg ? average(result, sources) : result;
}

template <class T>
std::uint64_t fold_plainly(hcclRedOp_t operation, const std::vector<std::uint64_t>& words,
                           std::size_t sources) {
  return to_word(fold_values(operation, words, sources, from_word<T>));
}

// Folds in the order given: 16-bit floats in float with one rounding to nearest even at the end;
// min and max give the canonical NaN for any NaN, and hold -0 below +0; integers wrap. One element
// is copied. An average divides by `sources`: more than there are words, if these are sums already.
inline std::uint64_t fold(hcclDataType_t type, hcclRedOp_t operation,
                          const std::vector<std::uint64_t>& words, std::size_t sources) {
  if (sources == 1) return words[0];
  const auto narrow = [](std::uint64_t word) { return static_cast<std::uint16_t>(word); };
  switch (type) {
    case hcclInt8:
      return fold_plainly<std::int8_t>(operation, words, sources);
    case hcclUint8:
      return fold_plainly<std::uint8_t>(operation, words, sources);
    case hcclInt32:
      return fold_plainly<std::int32_t>(operation, words, sources);
    case hcclUint32:
      return fold_plainly<std::uint32_t>(operation, words, sources);
    case hcclInt64:
      return fold_plainly<std::int64_t>(operation, words, sources);
    case hcclUint64:
      return fold_plainly<std::uint64_t>(operation, words, sources);
    case hcclFloat64:
      return fold_plainly<double>(operation, words, sources);
    case hcclFloat16:
      return to_half(fold_values(operation, words, sources,
                                 [&](std::uint64_t word) { return from_half(narrow(word)); }));
    case hcclBfloat16:
      return to_bfloat16(fold_values(operation, words, sources, [&](std::uint64_t word) {
        return from_bfloat16(narrow(word));
      }));
    default:
      return fold_plainly<float>(operation, words, sources);
  }
}

inline std::uint64_t fold(hcclDataType_t type, hcclRedOp_t operation,
                          const std::vector<std::uint64_t>& words) {
  return fold(type, operation, words, words.size());
}

inline bool is_prescaled(hcclDataType_t type) {
  return type == hcclFloat16 || type == hcclBfloat16;
}

// One factor, one rounding: of a 16-bit float.
inline std::uint64_t scaled(hcclDataType_t type, std::uint64_t word, float factor) {
  const auto narrow = static_cast<std::uint16_t>(word);
  return type == hcclFloat16 ? to_half(canonical(from_half(narrow) * factor))
                             : to_bfloat16(canonical(from_bfloat16(narrow) * factor));
}

// Takes a complete sum, prescaled where averages are.
inline std::uint64_t average_of_sum(hcclDataType_t type, std::uint64_t sum, std::size_t sources) {
  if (!is_prescaled(type)) return fold(type, hcclAvg, {sum}, sources);
  return scaled(type, sum, 1.0F / static_cast<float>(sources) / prescale_of(sources));
}

}  // namespace hccl::test
