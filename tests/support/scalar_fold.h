// SPDX-License-Identifier: Apache-2.0
// Reductions of single elements, written as plainly as possible: the reference with which tests
// compare results bit by bit. An element is stored in the low bytes of a 64-bit word.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include <hccl_emulation.h>

namespace hccl::test {

inline constexpr auto kAllTypes = [] {
  std::array<hcclDataType_t, hcclNumTypes> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<hcclDataType_t>(i);
  return all;
}();
inline constexpr std::array kAllReductions = {hcclSum, hcclProd, hcclMin, hcclMax, hcclAvg};

inline constexpr std::array kBitReductions = {hcclEmulationBitAnd, hcclEmulationBitOr,
                                              hcclEmulationBitXor};

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

// Returns the smaller or the larger of two numbers. -0 is less than +0, and any NaN gives a NaN.
template <class T>
T extremum(T a, T b, bool smaller) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return canonical(a + b);
    if (a == b) return std::signbit(a) == smaller ? a : b;
  }
  return (a < b) == smaller ? a : b;
}

// Applies a reduction to two numbers; hcclAvg adds them. Integers wrap: a sum or product is
// computed as an unsigned 64-bit number and truncated to the type.
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

// Returns the factor by which an average between nodes scales 16-bit floats before adding them. The
// final division undoes the scaling.
inline float prescale_of(std::size_t sources) {
  float scale = 1.0F;
  while (1.0F / scale < static_cast<float>(sources)) scale /= 2;
  return scale;
}

inline float from_bfloat16(std::uint16_t value) {
  return bits<float>(static_cast<std::uint32_t>(value) << 16);
}

// Decodes a half from the definition of its format: a sign, 5 bits of exponent and 10 of mantissa.
inline float from_half(std::uint16_t value) {
  const int exponent = value >> 10 & 31;
  const int mantissa = value & 1023;
  const float sign = (value >> 15) != 0 ? -1.0F : 1.0F;
  if (exponent == 31) return mantissa == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  return sign * std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
}

// Rounds to the nearest bfloat16, ties to even.
inline std::uint16_t to_bfloat16(float value) {
  const auto word = bits<std::uint32_t>(value);
  const auto toward_zero = static_cast<std::uint16_t>(word >> 16);
  if (std::isnan(value)) return 0x7FC0;
  const std::uint32_t rest = word & 0xFFFF;
  const bool up = rest > 0x8000 || (rest == 0x8000 && toward_zero % 2 == 1);
  return static_cast<std::uint16_t>(toward_zero + (up ? 1 : 0));
}

// Rounds to the nearest half, ties to even. The unit in the last place depends on the value's
// binade; for subnormal numbers, it is 2^-24.
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
  // The mantissa's leading one adds 1 to the exponent, and a carry adds another 1.
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

// Decodes the words of an element type for arithmetic, and encodes the results.
template <class T>
struct Form {
  using Value = T;
  static constexpr bool kIsFloat = std::is_floating_point_v<T>;
  static constexpr std::size_t kBytes = sizeof(T);
  static T read(std::uint64_t word) { return from_word<T>(word); }
  static std::uint64_t write(T value) { return to_word(value); }
};
template <float (*Read)(std::uint16_t), std::uint16_t (*Write)(float)>
struct NarrowForm {
  using Value = float;
  static constexpr bool kIsFloat = true;
  static constexpr std::size_t kBytes = 2;
  static float read(std::uint64_t word) { return Read(static_cast<std::uint16_t>(word)); }
  static std::uint64_t write(float value) { return Write(value); }
};

// Returns visit(name, form) for the type.
template <class Visit>
auto with_form(hcclDataType_t type, const Visit& visit) {
  switch (type) {
    case hcclInt8:
      return visit("int8", Form<std::int8_t>());
    case hcclUint8:
      return visit("uint8", Form<std::uint8_t>());
    case hcclInt32:
      return visit("int32", Form<std::int32_t>());
    case hcclUint32:
      return visit("uint32", Form<std::uint32_t>());
    case hcclInt64:
      return visit("int64", Form<std::int64_t>());
    case hcclUint64:
      return visit("uint64", Form<std::uint64_t>());
    case hcclFloat64:
      return visit("double", Form<double>());
    case hcclFloat16:
      return visit("half", NarrowForm<from_half, to_half>());
    case hcclBfloat16:
      return visit("bfloat16", NarrowForm<from_bfloat16, to_bfloat16>());
    default:
      return visit("float", Form<float>());
  }
}

inline std::size_t size_of(hcclDataType_t type) {
  return with_form(type, [](const char*, auto form) { return form.kBytes; });
}

inline bool is_float(hcclDataType_t type) {
  return with_form(type, [](const char*, auto form) { return form.kIsFloat; });
}

// Returns the reductions of a type; the bitwise ones come last.
inline std::vector<hcclRedOp_t> reductions_of(hcclDataType_t type) {
  std::vector<hcclRedOp_t> all(kAllReductions.begin(), kAllReductions.end());
  if (!is_float(type)) all.insert(all.end(), kBitReductions.begin(), kBitReductions.end());
  return all;
}

// Folds the words of each column of `rows` in the given order. Each row has the words of one
// source. Folds 16-bit floats in float and rounds once at the end, to nearest even. Min and max
// return the canonical NaN for any NaN and order -0 below +0. Integers wrap. If `sources` is 1,
// copies the row. An average multiplies a sum of floats by the reciprocal of `sources`, and divides
// a sum of integers by `sources`. `sources` exceeds the number of rows if the rows are sums.
inline void fold_rows(hcclDataType_t type, hcclRedOp_t operation,
                      std::span<const std::uint64_t> rows, std::size_t sources,
                      std::span<std::uint64_t> result) {
  const std::size_t columns = result.size();
  if (sources == 1) return static_cast<void>(std::copy_n(rows.begin(), columns, result.begin()));
  with_form(type, [&](const char*, auto form) {
    for (std::size_t column = 0; column < columns; ++column) {
      auto value = form.read(rows[column]);
      for (std::size_t at = column + columns; at < rows.size(); at += columns)
        value = apply(operation, value, form.read(rows[at]));
      result[column] = form.write(operation == hcclAvg ? average(value, sources) : value);
    }
  });
}

inline std::uint64_t fold(hcclDataType_t type, hcclRedOp_t operation,
                          const std::vector<std::uint64_t>& words, std::size_t sources) {
  std::uint64_t result = 0;
  fold_rows(type, operation, words, sources, {&result, 1});
  return result;
}

inline std::uint64_t fold(hcclDataType_t type, hcclRedOp_t operation,
                          const std::vector<std::uint64_t>& words) {
  return fold(type, operation, words, words.size());
}

// Returns whether elements of the type are prescaled for averages between nodes.
inline bool is_prescaled(hcclDataType_t type) { return is_float(type) && size_of(type) == 2; }

// Returns the element multiplied by `factor`. A 16-bit float is multiplied as a float, and the
// product is then rounded to the type.
inline std::uint64_t scaled(hcclDataType_t type, std::uint64_t word, float factor) {
  return with_form(type, [&](const char*, auto form) {
    using Value = typename decltype(form)::Value;
    return form.write(apply(hcclProd, form.read(word), static_cast<Value>(factor)));
  });
}

// Returns the average of `sources` elements from their sum. If is_prescaled(type), `sum` is their
// prescaled sum.
inline std::uint64_t average_of_sum(hcclDataType_t type, std::uint64_t sum, std::size_t sources) {
  if (!is_prescaled(type)) return fold(type, hcclAvg, {sum}, sources);
  return scaled(type, sum, 1.0F / static_cast<float>(sources) / prescale_of(sources));
}

}  // namespace hccl::test
