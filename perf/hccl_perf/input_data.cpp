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

}  // namespace

void fill_input(const DataType& type, InputKey key, std::uint64_t first, std::size_t count,
                void* out) {
  const Seed seed = make_seed(key);
  const std::uint32_t base = static_cast<std::uint32_t>(first);
  const std::uint32_t end = static_cast<std::uint32_t>(count);
  if (type.code == hcclBfloat16) {
    auto* values = static_cast<std::uint16_t*>(out);
    for (std::uint32_t i = 0; i < end; ++i) {
      values[i] = static_cast<std::uint16_t>(float_bits(element_word(seed, base + i)) >> 16);
    }
    return;
  }
  auto* values = static_cast<std::uint32_t*>(out);
  if (type.code == hcclFloat32) {
    for (std::uint32_t i = 0; i < end; ++i) values[i] = float_bits(element_word(seed, base + i));
  } else {
    for (std::uint32_t i = 0; i < end; ++i) values[i] = element_word(seed, base + i);
  }
}

}  // namespace hccl_perf
