// SPDX-License-Identifier: Apache-2.0
// Test data that each rank can compute for every other rank.
#pragma once

#include "scalar_fold.h"

#include <span>

namespace hccl::test {

[[nodiscard]] const char* name_of(hcclDataType_t type);
[[nodiscard]] const char* name_of(hcclRedOp_t operation);

enum class Data {
  numbers,   // finite floats with exponents in [-20, 20) (half: any exponent), or any integer
  specials,  // as `numbers`, with an occasional NaN, infinity or zero of either sign
  bits       // any bit pattern, for collectives that only copy
};

// Returns element `index` of rank `source`'s data for `seed`, as a word.
[[nodiscard]] std::uint64_t element_word(hcclDataType_t type, Data data, std::uint64_t seed,
                                         int source, std::size_t index);

// Fills `words` with consecutive elements, starting with element `first`.
void element_words(hcclDataType_t type, Data data, std::uint64_t seed, int source,
                   std::size_t first, std::span<std::uint64_t> words);

void store_word(hcclDataType_t type, std::byte* where, std::uint64_t word);
void store_words(hcclDataType_t type, std::byte* where, std::span<const std::uint64_t> words);

}  // namespace hccl::test
