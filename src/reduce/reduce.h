// SPDX-License-Identifier: Apache-2.0
// Reduction of one tile: folds sources in the order given and stores the result to every
// destination.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <hccl_emulation.h>

namespace hccl::reduce {

// `cached` is for working sets that lie well within the last-level cache. `interleaved` is for
// those about as large: a copy goes to all its destinations line by line, so that their misses
// overlap. `streaming` bypasses the cache (non-temporal stores, fenced before return): for working
// sets past it. Destinations in place are stored plainly all the same, which is cheaper.
enum class StorePolicy { cached, interleaved, streaming };

// Bytes of one element, 0 for a value that is no data type.
[[nodiscard]] constexpr std::size_t element_size(hcclDataType_t type) noexcept {
  constexpr std::array<std::uint8_t, hcclNumTypes> kBytes{1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  static_assert(hcclBfloat16 == 9 && hcclFloat16 == 6 && hcclInt64 == 4);
  const auto number = static_cast<std::size_t>(type);
  return number < kBytes.size() ? kBytes[number] : 0;
}
// Whole elements in `bytes`, 0 likewise.
[[nodiscard]] constexpr std::size_t elements_in(hcclDataType_t type, std::size_t bytes) noexcept {
  const std::size_t size = element_size(type);
  return size == 0 ? 0 : bytes / size;
}
[[nodiscard]] const char* type_name(hcclDataType_t type) noexcept;  // "float", "bfloat16", ...
[[nodiscard]] const char* operation_name(hcclRedOp_t operation) noexcept;  // "sum", ...

[[nodiscard]] constexpr bool is_bitwise(hcclRedOp_t operation) noexcept {
  return operation >= hcclEmulationBitAnd && operation <= hcclEmulationBitXor;
}

// Returns true if reduce_tile knows this pair: only integers have bitwise reductions.
[[nodiscard]] bool supports(hcclDataType_t type, hcclRedOp_t operation) noexcept;

// destinations[d][i] = fold over s of sources[s][i], in the order of `sources`, of which there is
// at least one; half and bfloat16 fold in float and round once, to nearest even. A destination may
// equal a source (same address); no other overlap. Addresses need no alignment, but aligned
// elements are faster. Bitwise the same for every split of a buffer into tiles, on every processor
// and in every floating-point mode of the calling thread: a floating-point result that is not a
// number is always the canonical NaN, -0 is less than +0; sums and products of integers wrap; an
// average is the sum, multiplied by 1 / n in the accumulator's type, or divided and truncated in
// integers. One source is copied as it is.
void reduce_tile(hcclDataType_t type, hcclRedOp_t operation,
                 std::span<const std::byte* const> sources,
                 std::span<std::byte* const> destinations, std::size_t count,
                 StorePolicy policy) noexcept;

// An average whose sum is not folded at once, but rounded in between, in three passes: sums of half
// and bfloat16 may then leave the range of the type although the mean does not. So each input is
// scaled down by the smallest power of two that is not less than `parts`, which only rounds what
// becomes denormal; the sum is folded; average_tile() makes up for the scale.
[[nodiscard]] bool needs_prescale(hcclDataType_t type) noexcept;
void prescale_tile(hcclDataType_t type, const std::byte* source, std::byte* destination,
                   std::size_t count, std::uint32_t parts) noexcept;
// Makes averages of complete sums of `parts` values each, in place: multiplies by 1 / parts in the
// accumulator's type and rounds once, or divides and truncates integers. Sums of types that need it
// are of prescaled values.
void average_tile(hcclDataType_t type, std::byte* values, std::size_t count,
                  std::uint32_t parts) noexcept;

// Copies `bytes` to every destination that is not the source itself.
void copy_tile(const std::byte* source, std::span<std::byte* const> destinations, std::size_t bytes,
               StorePolicy policy) noexcept;

}  // namespace hccl::reduce
