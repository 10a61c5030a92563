// SPDX-License-Identifier: Apache-2.0
// Test data that any rank can compute for any other.
#pragma once

#include "scalar_fold.h"

#include <span>

namespace hccl::test {

[[nodiscard]] const char* name_of(hcclDataType_t type);
[[nodiscard]] const char* name_of(hcclRedOp_t operation);

enum class Data {
  numbers,   // finite, random mantissas and signs over 2^-20 .. 2^20 (half: any); any integers
  specials,  // numbers, and now and then a NaN, an infinity or a zero of either sign
  bits       // any bits at all, for pure copies
};

// Word of element `index` of the data of `source` (a rank) under `seed`.
[[nodiscard]] std::uint64_t element_word(hcclDataType_t type, Data data, std::uint64_t seed,
                                         int source, std::size_t index);

// Fills `words` with those of consecutive elements, the first of which has the index `first`.
void element_words(hcclDataType_t type, Data data, std::uint64_t seed, int source,
                   std::size_t first, std::span<std::uint64_t> words);

void store_word(hcclDataType_t type, std::byte* where, std::uint64_t word);
void store_words(hcclDataType_t type, std::byte* where, std::span<const std::uint64_t> words);

}  // namespace hccl::test
