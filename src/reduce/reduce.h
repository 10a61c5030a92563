// SPDX-License-Identifier: Apache-2.0
// Reduces one tile: folds the sources in the given order and stores the result to every
// destination. Also copies tiles, and scales and divides them for averages across nodes.
#pragma once

#include "reduce/data_type.h"

#include <cstddef>
#include <cstdint>
#include <span>

#include <hccl_emulation.h>

namespace hccl::reduce {

// `cached`: for working sets well within the last-level cache. `interleaved`: for working sets of
// about the size of that cache; a copy writes four lines to all destinations before the next four,
// so that cache misses overlap. `streaming`: for larger working sets; uses non-temporal stores for
// whole lines where it can. These stores bypass the cache, and are fenced before the function
// returns. Destinations that are also sources get plain stores, which are cheaper there.
enum class StorePolicy { cached, interleaved, streaming };

// Returns the size of an element in bytes, or 0 if `type` is not a data type.
[[nodiscard]] constexpr std::size_t element_size(hcclDataType_t type) noexcept {
  return data_type(type).bytes;
}
// Returns the number of whole elements in `bytes`, or 0 if `type` is not a data type.
[[nodiscard]] constexpr std::size_t elements_in(hcclDataType_t type, std::size_t bytes) noexcept {
  const std::size_t size = element_size(type);
  return size == 0 ? 0 : bytes / size;
}
// Returns a name such as "float" or "bfloat16", or "unknown type".
[[nodiscard]] constexpr const char* type_name(hcclDataType_t type) noexcept {
  return data_type(type).name;
}
[[nodiscard]] const char* operation_name(hcclRedOp_t operation) noexcept;  // "sum", ...

[[nodiscard]] constexpr bool is_bitwise(hcclRedOp_t operation) noexcept {
  return operation >= hcclEmulationBitAnd && operation <= hcclEmulationBitXor;
}

// Returns whether reduce_tile() supports this operation for this type. Only integers have bitwise
// reductions.
[[nodiscard]] bool supports(hcclDataType_t type, hcclRedOp_t operation) noexcept;

// Sets destinations[d][i] to the fold of sources[0][i], sources[1][i], ..., in this order, for
// every i below `count`. `sources` must not be empty. half and bfloat16 fold in float and round
// once, to nearest even. A destination may equal a source (same address) but must not otherwise
// overlap one. Addresses need no alignment, but aligned elements are faster. Results are bitwise
// identical for every split of a buffer into tiles, on every processor and in every floating-point
// mode of the calling thread: every NaN result is the canonical NaN, and -0 is less than +0. Sums
// and products of integers wrap. An average is the sum multiplied by 1 / n in the accumulator's
// type, or divided and truncated for integers. A single source is copied unchanged, even its NaNs.
void reduce_tile(hcclDataType_t type, hcclRedOp_t operation,
                 std::span<const std::byte* const> sources,
                 std::span<std::byte* const> destinations, std::size_t count,
                 StorePolicy policy) noexcept;

// Starts to prefetch, into this core's cache, the lines that the caller will overwrite. Does not
// wait for them. A line in another core's cache then moves to this core once, instead of once for a
// read and once for a store, and the stores do not wait for it.
inline void prefetch_for_stores(const std::byte* from, std::size_t bytes) noexcept {
  constexpr std::size_t kLineBytes = 64;
  for (std::size_t at = 0; at < bytes; at += kLineBytes) {
#if defined(__x86_64__)
    // GCC's __builtin_prefetch() needs -mprfchw to emit this instruction, which the x86-64
    // processors of the last fifteen years execute or ignore.
    asm volatile("prefetchw %0" : : "m"(from[at]));
#else
    __builtin_prefetch(from + at, 1);
#endif
  }
}

// Returns whether folding the first few sources, and then their result with the remaining sources,
// gives the same bits as folding all sources at once, with any operation but hcclAvg. Returns false
// for half and bfloat16, because each step of a sum or a product rounds.
[[nodiscard]] constexpr bool folds_in_steps(hcclDataType_t type) noexcept {
  return !data_type(type).needs_prescale;
}

// Returns whether prescale_tile() must precede an average that sums in several steps and rounds
// between them: a sum of half or bfloat16 may overflow although the mean does not.
[[nodiscard]] constexpr bool needs_prescale(hcclDataType_t type) noexcept {
  return data_type(type).needs_prescale;
}
// Divides each value by the smallest power of two that is not less than `parts`. The division is
// exact unless the result is denormal. Only for types with needs_prescale().
void prescale_tile(hcclDataType_t type, const std::byte* source, std::byte* destination,
                   std::size_t count, std::uint32_t parts) noexcept;
// Turns complete sums of `parts` values each into averages, in place: multiplies by 1 / parts in
// the accumulator's type and rounds once, or divides and truncates integers. If
// needs_prescale(type), the values must have been prescaled before they were summed; average_tile()
// undoes the scaling.
void average_tile(hcclDataType_t type, std::byte* values, std::size_t count,
                  std::uint32_t parts) noexcept;

// Copies `bytes` bytes to every destination that is not the source itself.
void copy_tile(const std::byte* source, std::span<std::byte* const> destinations, std::size_t bytes,
               StorePolicy policy) noexcept;

}  // namespace hccl::reduce
