// SPDX-License-Identifier: Apache-2.0
// Computes test data from hashes.
#include "elements.h"

#include <cstring>

namespace hccl::test {
namespace {

std::uint64_t mix(std::uint64_t value) {  // splitmix64
  value += 0x9E3779B97F4A7C15U;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9U;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBU;
  return value ^ (value >> 31);
}

// Returns a float whose sign, mantissa and exponent in [-20, 20) are random.
std::uint32_t random_float_bits(std::uint64_t random) {
  const auto sign = static_cast<std::uint32_t>(random >> 63) << 31;
  const auto exponent = static_cast<std::uint32_t>((random >> 32) % 40 + 127 - 20) << 23;
  const auto mantissa = static_cast<std::uint32_t>(random) & 0x7FFFFFU;
  return sign | exponent | mantissa;
}

std::uint32_t special_float_bits(std::uint64_t random) {
  switch (random % 6) {
    case 0:
      return 0x7FC00000U;  // the canonical NaN
    case 1:
      return 0x7FC10000U | (static_cast<std::uint32_t>(random >> 62) << 31);  // another NaN
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

std::uint64_t double_word(std::uint32_t float_bits, std::uint64_t random, bool special) {
  const auto wide = static_cast<double>(bits<float>(float_bits));
  return to_word(wide) | (special ? 0 : mix(random) & 0x1FFFFFFFU);
}

// If `special`, returns `float_bits` converted to half. Otherwise returns 16 random bits; if they
// encode an infinity or a NaN, clears the highest exponent bit, so that the half is finite.
std::uint16_t half_word(std::uint32_t float_bits, std::uint64_t random, bool special) {
  if (special) return to_half(bits<float>(float_bits));
  const auto word = static_cast<std::uint16_t>(random);
  return (word & 0x7C00) == 0x7C00 ? static_cast<std::uint16_t>(word & 0xBFFF) : word;
}

std::uint64_t float_word(hcclDataType_t type, Data data, std::uint64_t random) {
  const bool special = data == Data::specials && (random >> 40) % 16 == 0;
  const std::uint32_t word = special ? special_float_bits(mix(random)) : random_float_bits(random);
  if (type == hcclFloat64) return double_word(word, random, special);
  if (type == hcclFloat16) return half_word(word, random, special);
  return size_of(type) == 2 ? word >> 16 : word;
}

template <std::size_t kSize>
void store_narrow(std::byte* where, std::span<const std::uint64_t> words) {
  for (std::size_t i = 0; i < words.size(); ++i) std::memcpy(where + i * kSize, &words[i], kSize);
}

}  // namespace

const char* name_of(hcclDataType_t type) {
  return with_form(type, [](const char* name, auto) { return name; });
}

const char* name_of(hcclRedOp_t operation) {
  constexpr std::array kNames = {"sum", "prod", "min", "max", "avg", "none"};
  if (operation == hcclEmulationBitAnd) return "bitand";
  if (operation == hcclEmulationBitOr) return "bitor";
  if (operation == hcclEmulationBitXor) return "bitxor";
  return kNames.at(operation);
}

void element_words(hcclDataType_t type, Data data, std::uint64_t seed, int source,
                   std::size_t first, std::span<std::uint64_t> words) {
  const std::uint64_t stream = mix(seed + static_cast<std::uint64_t>(source));
  const std::size_t unused = 64 - 8 * size_of(type);
  if (!is_float(type) || data == Data::bits) {
    for (std::size_t i = 0; i < words.size(); ++i)
      words[i] = mix(stream ^ (first + i)) << unused >> unused;
    return;
  }
  for (std::size_t i = 0; i < words.size(); ++i)
    words[i] = float_word(type, data, mix(stream ^ (first + i)));
}

std::uint64_t element_word(hcclDataType_t type, Data data, std::uint64_t seed, int source,
                           std::size_t index) {
  std::uint64_t word = 0;
  element_words(type, data, seed, source, index, {&word, 1});
  return word;
}

void store_word(hcclDataType_t type, std::byte* where, std::uint64_t word) {
  std::memcpy(where, &word, size_of(type));
}

void store_words(hcclDataType_t type, std::byte* where, std::span<const std::uint64_t> words) {
  switch (size_of(type)) {
    case 1:
      return store_narrow<1>(where, words);
    case 2:
      return store_narrow<2>(where, words);
    case 4:
      return store_narrow<4>(where, words);
    default:
      return store_narrow<8>(where, words);
  }
}

}  // namespace hccl::test
