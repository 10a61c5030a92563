// SPDX-License-Identifier: Apache-2.0
// The generator: additions, shifts and exclusive-ors only, so that compilers vectorise it for any
// CPU.
#include "input_data.h"

namespace hccl_perf {
namespace {

// Bits of a float (and, in the upper half, of a bfloat16): sign, the low 4 exponent bits, mantissa.
constexpr std::uint32_t kRandomBits = 0x8FFFFFFF;
constexpr std::uint32_t kExponentBase = 111U << 23;  // 2^-16; the 5 random bits add up to 31

struct Seed {
  std::uint32_t start;
  std::uint32_t
      twist;  // applied in the middle, so that two ranks' sequences are not shifts of one another
};

// Mixes rank and run well once per call (a 64-bit finaliser); the elements then need less work.
Seed make_seed(InputKey key) {
  constexpr std::uint64_t kRunStep = 0x9E3779B97F4A7C15;
  const auto rank = static_cast<std::uint64_t>(key.rank);
  std::uint64_t word = key.run * kRunStep + (rank + 1);
  for (int round = 0; round < 2; ++round) {
    word ^= word >> 31;
    word *= 0xD6E8FEB86659FD93ULL;
    word ^= word >> 29;
  }
  return {static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32)};
}

// Element `index` of the sequence of `seed`: each step is a bijection of 32-bit words.
inline std::uint32_t element_word(Seed seed, std::uint32_t index) {
  std::uint32_t word = seed.start + index * 0x9E3779B9U;
  word ^= word >> 16;
  word += word << 10;
  word ^= (word >> 13) ^ seed.twist;
  word += word << 5;
  word ^= word >> 17;
  word += word << 9;
  word ^= word >> 14;
  return word;
}

inline std::uint32_t float_bits(std::uint32_t word) { return (word & kRandomBits) + kExponentBase; }

// The same with the fields of half and double: sign, the low exponent bits, mantissa; the rest of
// the mantissa of a double is a word of its own.
inline std::uint16_t half_bits(std::uint32_t word) {
  return static_cast<std::uint16_t>((word & 0x9FFFU) + (8U << 10));
}
inline std::uint64_t double_bits(std::uint64_t words) {
  return (words & 0x81FFFFFFFFFFFFFF) + (std::uint64_t{1007} << 52);
}

inline std::uint64_t two_words(Seed seed, std::uint32_t index) {
  return std::uint64_t{element_word(seed, 2 * index)} << 32 | element_word(seed, 2 * index + 1);
}

template <class Stored, class Make>
void fill_each(void* out, std::uint32_t first, std::size_t count, Make make) {
  auto* values = static_cast<Stored*>(out);
  const auto end = static_cast<std::uint32_t>(count);
  for (std::uint32_t i = 0; i < end; ++i) values[i] = static_cast<Stored>(make(first + i));
}

}  // namespace

void fill_input(const DataType& type, InputKey key, std::uint64_t first, std::size_t count,
                void* out) {
  const Seed seed = make_seed(key);
  const auto base = static_cast<std::uint32_t>(first);
  const auto word = [seed](std::uint32_t i) { return element_word(seed, i); };
  const auto words = [seed](std::uint32_t i) { return two_words(seed, i); };
  switch (type.code) {
    case hcclInt8:
    case hcclUint8:
      return fill_each<std::uint8_t>(out, base, count, word);
    case hcclInt32:
    case hcclUint32:
      return fill_each<std::uint32_t>(out, base, count, word);
    case hcclInt64:
    case hcclUint64:
      return fill_each<std::uint64_t>(out, base, count, words);
    case hcclFloat16:
      return fill_each<std::uint16_t>(out, base, count,
                                      [&](std::uint32_t i) { return half_bits(word(i)); });
    case hcclBfloat16:
      return fill_each<std::uint16_t>(out, base, count,
                                      [&](std::uint32_t i) { return float_bits(word(i)) >> 16; });
    case hcclFloat64:
      return fill_each<std::uint64_t>(out, base, count,
                                      [&](std::uint32_t i) { return double_bits(words(i)); });
    default:
      return fill_each<std::uint32_t>(out, base, count,
                                      [&](std::uint32_t i) { return float_bits(word(i)); });
  }
}

}  // namespace hccl_perf
