// SPDX-License-Identifier: Apache-2.0
// Test data that any rank can compute for any other, and the scalar reference of a reduction in
// rank order.
#pragma once

#include <hccl_types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hccl::test {

[[nodiscard]] std::size_t size_of(hcclDataType_t type);
[[nodiscard]] const char* name_of(hcclDataType_t type);
[[nodiscard]] const char* name_of(hcclRedOp_t operation);

enum class Data {
  numbers,   // finite, random mantissas and signs over 2^-20 .. 2^20; any int32
  specials,  // numbers, and now and then a NaN, an infinity or a zero of either sign
  bits       // any bits at all, for pure copies
};

// Bits of element `index` of the data of `source` (a rank) under `seed`.
[[nodiscard]] std::uint32_t element_bits(hcclDataType_t type, Data data, std::uint64_t seed,
                                         int source, std::size_t index);

void store_bits(hcclDataType_t type, std::byte* where, std::uint32_t bits);
[[nodiscard]] std::uint32_t load_bits(hcclDataType_t type, const std::byte* where);

// Folds in the order given: bfloat16 in float with one rounding to nearest even at the end; min and
// max give the canonical NaN for any NaN, and hold -0 below +0; int32 wraps.
[[nodiscard]] std::uint32_t fold(hcclDataType_t type, hcclRedOp_t operation,
                                 const std::vector<std::uint32_t>& sources);

[[nodiscard]] std::uint16_t to_bfloat16(float value);

}  // namespace hccl::test
