// SPDX-License-Identifier: Apache-2.0
// Plain scalar code on purpose: it is what the vector kernels are compared with.
#include "elements.h"

#include "check.h"

#include <cmath>
#include <cstring>

namespace hccl::test {
namespace {

std::uint64_t mix(std::uint64_t value) {  // splitmix64
  value += 0x9E3779B97F4A7C15U;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9U;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBU;
  return value ^ (value >> 31);
}

std::uint32_t bits_of(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

float float_of(std::uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Sign, exponent in [-20, 20) and mantissa, each random.
std::uint32_t random_float_bits(std::uint64_t random) {
  const auto sign = static_cast<std::uint32_t>(random >> 63) << 31;
  const auto exponent = static_cast<std::uint32_t>((random >> 32) % 40 + 127 - 20) << 23;
  const auto mantissa = static_cast<std::uint32_t>(random) & 0x7FFFFFU;
  return sign | exponent | mantissa;
}

std::uint32_t special_float_bits(std::uint64_t random) {
  switch (random % 6) {
    case 0:
      return 0x7FC00000U;  // canonical NaN
    case 1:
      return 0x7FC10000U | (static_cast<std::uint32_t>(random >> 62) << 31);  // other NaNs
    case 2:
      return 0x7F800000U;
    case 3:
      return 0xFF800000U;
    case 4:
      return 0x80000000U;
    default:
      return 0;
  }
}

float to_float(hcclDataType_t type, std::uint32_t bits) {
  return float_of(type == hcclBfloat16 ? bits << 16 : bits);
}

float smaller(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return float_of(0x7FC00000U);
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

float larger(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return float_of(0x7FC00000U);
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

float combine(hcclRedOp_t operation, float a, float b) {
  return operation == hcclSum ? a + b : operation == hcclMin ? smaller(a, b) : larger(a, b);
}

std::uint32_t combine_integers(hcclRedOp_t operation, std::uint32_t a, std::uint32_t b) {
  if (operation == hcclSum) return a + b;
  const bool less = static_cast<std::int32_t>(a) < static_cast<std::int32_t>(b);
  return less == (operation == hcclMin) ? a : b;
}

}  // namespace

std::size_t size_of(hcclDataType_t type) { return type == hcclBfloat16 ? 2 : 4; }

const char* name_of(hcclDataType_t type) {
  return type == hcclFloat32 ? "float" : type == hcclBfloat16 ? "bfloat16" : "int32";
}

const char* name_of(hcclRedOp_t operation) {
  return operation == hcclSum ? "sum" : operation == hcclMin ? "min" : "max";
}

std::uint32_t element_bits(hcclDataType_t type, Data data, std::uint64_t seed, int source,
                           std::size_t index) {
  const std::uint64_t random = mix(mix(seed + static_cast<std::uint64_t>(source)) ^ index);
  const bool narrow = type == hcclBfloat16;
  if (type == hcclInt32) return static_cast<std::uint32_t>(random);
  if (data == Data::bits) return static_cast<std::uint32_t>(random) & (narrow ? 0xFFFFU : ~0U);
  const bool special = data == Data::specials && (random >> 40) % 16 == 0;
  const std::uint32_t bits = special ? special_float_bits(mix(random)) : random_float_bits(random);
  return narrow ? bits >> 16 : bits;
}

void store_bits(hcclDataType_t type, std::byte* where, std::uint32_t bits) {
  const auto narrow = static_cast<std::uint16_t>(bits);
  if (type == hcclBfloat16) {
    std::memcpy(where, &narrow, sizeof(narrow));
  } else {
    std::memcpy(where, &bits, sizeof(bits));
  }
}

std::uint32_t load_bits(hcclDataType_t type, const std::byte* where) {
  std::uint16_t narrow = 0;
  std::uint32_t bits = 0;
  if (type == hcclBfloat16) {
    std::memcpy(&narrow, where, sizeof(narrow));
    return narrow;
  }
  std::memcpy(&bits, where, sizeof(bits));
  return bits;
}

std::uint16_t to_bfloat16(float value) {
  const std::uint32_t bits = bits_of(value);
  if (std::isnan(value)) return 0x7FC0U;
  const std::uint32_t even = (bits >> 16) & 1U;
  return static_cast<std::uint16_t>((bits + 0x7FFFU + even) >> 16);
}

std::uint32_t fold(hcclDataType_t type, hcclRedOp_t operation,
                   const std::vector<std::uint32_t>& sources) {
  require(!sources.empty(), "a fold of something");
  if (sources.size() == 1) return sources.front();  // one rank: a copy
  if (type == hcclInt32) {
    std::uint32_t result = sources.front();
    for (std::size_t at = 1; at < sources.size(); ++at) {
      result = combine_integers(operation, result, sources[at]);
    }
    return result;
  }
  float result = to_float(type, sources.front());
  for (std::size_t at = 1; at < sources.size(); ++at) {
    result = combine(operation, result, to_float(type, sources[at]));
  }
  return type == hcclBfloat16 ? to_bfloat16(result) : bits_of(result);
}

}  // namespace hccl::test
