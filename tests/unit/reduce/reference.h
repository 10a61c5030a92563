// SPDX-License-Identifier: Apache-2.0
// Inputs of the kernels, and the expected results.
#pragma once

#include "scalar_fold.h"

#include <numeric>
#include <random>

namespace hccl::reduce::reference {

using test::bits;
using test::kAllReductions;
using test::kAllTypes;
using test::kBitReductions;
using test::reductions_of;
using test::size_of;

using Bytes = std::vector<std::byte>;

// The number of random sources, and the number of elements in each.
constexpr std::size_t kMostSources = 16;
constexpr std::size_t kMostCount = 9000;

enum class Values { ordinary, special };

inline std::vector<std::size_t> rank_order(std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

// Returns the bits of a float with random sign, random mantissa, and an exponent from -20 to 20.
// For Values::special, every third float on average is a special value instead.
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

// Returns the bits of a double: a random_float() whose low mantissa bits are random too, if the
// value is finite and not 0.
inline std::uint64_t random_double(std::mt19937& random, Values values) {
  const auto value = bits<float>(random_float(random, values));
  const auto word = bits<std::uint64_t>(static_cast<double>(value));
  return std::isfinite(value) && value != 0 ? word | (random() & 0x1FFFFFFF) : word;
}

// Returns a half with random bits. The half is finite unless `values` is Values::special.
inline std::uint16_t random_half(std::mt19937& random, Values values) {
  const auto word = static_cast<std::uint16_t>(random());
  const bool is_finite = (word & 0x7C00) != 0x7C00;
  return values == Values::special || is_finite ? word : static_cast<std::uint16_t>(word & 0xBFFF);
}

inline std::uint64_t random_word(hcclDataType_t type, std::mt19937& random, Values values) {
  if (type == hcclFloat16) return random_half(random, values);
  if (type == hcclFloat64) return random_double(random, values);
  if (test::is_prescaled(type)) return random_float(random, values) >> 16;
  if (type == hcclFloat32) return random_float(random, values);
  return static_cast<std::uint64_t>(random()) << 32 | random();
}

inline std::vector<Bytes> random_sources(hcclDataType_t type, Values values) {
  std::mt19937 random(20240607);
  const std::size_t size = size_of(type);
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
  const std::size_t size = size_of(type);
  Bytes result(kMostCount * size);
  std::vector<std::uint64_t> words(order.size());
  for (std::size_t i = 0; i < kMostCount; ++i) {
    for (std::size_t s = 0; s < order.size(); ++s) {
      words[s] = 0;
      std::memcpy(&words[s], sources[order[s]].data() + i * size, size);
    }
    const std::uint64_t word = test::fold(type, operation, words);
    std::memcpy(result.data() + i * size, &word, size);
  }
  return result;
}

}  // namespace hccl::reduce::reference
