// SPDX-License-Identifier: Apache-2.0
// Generates elements with simple 32-bit operations, so that compilers can vectorise the loop for
// any CPU.
#include "input_data.h"

#include "element_forms.h"

namespace hccl_perf {
namespace {

struct Seed {
  std::uint32_t start;
  std::uint32_t twist;  // mixed in halfway, so that no sequence is a shifted copy of another
};

// Mixes the rank and the run with a 64-bit finaliser. fill_input() calls it only once for all
// elements, so that each element needs less work.
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

// Returns element `index` of the sequence of `seed`. Each step is a bijection of 32-bit words.
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

inline std::uint64_t two_words(Seed seed, std::uint32_t index) {
  return std::uint64_t{element_word(seed, 2 * index)} << 32 | element_word(seed, 2 * index + 1);
}

}  // namespace

void fill_input(const DataType& type, InputKey key, std::uint64_t first, std::size_t count,
                void* out) {
  const Seed seed = make_seed(key);
  const auto base = static_cast<std::uint32_t>(first);
  const auto end = static_cast<std::uint32_t>(count);
  with_form(type.code, [&](auto form) {
    using Stored = typename decltype(form)::Stored;
    auto* values = static_cast<Stored*>(out);
    for (std::uint32_t i = 0; i < end; ++i) {
      if constexpr (sizeof(Stored) == 8) {
        values[i] = form.sample(two_words(seed, base + i));
      } else {
        values[i] = form.sample(element_word(seed, base + i));
      }
    }
  });
}

}  // namespace hccl_perf
