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

// Words of so many elements from `first` on.
void element_words(hcclDataType_t type, Data data, std::uint64_t seed, int source,
                   std::size_t first, std::span<std::uint64_t> words);

void store_word(hcclDataType_t type, std::byte* where, std::uint64_t word);

}  // namespace hccl::test
