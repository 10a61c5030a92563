// SPDX-License-Identifier: Apache-2.0
// The kernels for the best instruction set of this processor, as plain function pointers.
#pragma once

#include "reduce/reduce.h"

#include <cstddef>
#include <span>

namespace hccl::reduce {

// The operands of a fold: at least two sources, and destinations that may equal sources.
struct FoldOperands {
  const std::byte* const* sources;
  std::size_t source_count;
  std::byte* const* destinations;
  std::size_t destination_count;
};

// The functions that fold elements of one data type with one reduction.
struct FoldKernel {
  // The length of a block is a multiple of this number of bytes, whatever the vector length.
  static constexpr std::size_t kBlockUnit = 512;

  std::size_t element_bytes;
  // Folds the bytes [begin, end) of every source into `out`, which may equal sources[s] + begin for
  // any s. The length must be a multiple of kBlockUnit.
  void (*block)(const std::byte* const* sources, std::size_t source_count, std::size_t begin,
                std::size_t end, std::byte* out);
  // Like block(), but bypasses the cache. `out` must be aligned to a line.
  void (*streamed_block)(const std::byte* const* sources, std::size_t source_count,
                         std::size_t begin, std::size_t end, std::byte* out);
  // Folds the bytes [begin, end) of every source, which must be whole elements, into every
  // destination.
  void (*range)(const FoldOperands& operands, std::size_t begin, std::size_t end);
};

// The kernels of one data type: those for hcclSum to hcclAvg, indexed by these values, then the
// bitwise kernels, which only integers have.
struct FoldRow {
  static constexpr std::size_t kBitwise = hcclOpNone;  // index of the first bitwise kernel
  static constexpr std::size_t kOperations = kBitwise + 3;

  FoldKernel by_operation[kOperations];

  [[nodiscard]] static constexpr std::size_t position_of(hcclRedOp_t operation) noexcept {
    return is_bitwise(operation)
               ? kBitwise + static_cast<std::size_t>(operation - hcclEmulationBitAnd)
               : static_cast<std::size_t>(operation);
  }
};

struct TileWalks {
  void (*reduce)(const FoldKernel& kernel, const FoldOperands& operands, std::size_t bytes,
                 StorePolicy policy);
  // Copies a tile to all destinations together, four lines at a time. No destination may be the
  // source.
  void (*interleaved_copy)(const std::byte* source, std::byte* const* destinations,
                           std::size_t destination_count, std::size_t bytes);
  // Copies a tile to every destination that is not the source. Whole lines bypass the cache.
  void (*stream_copy)(const std::byte* source, std::byte* const* destinations,
                      std::size_t destination_count, std::size_t bytes);
};

struct KernelTable {
  FoldRow folds[hcclNumTypes];  // indexed by hcclDataType_t
  TileWalks walks;

  [[nodiscard]] const FoldKernel& fold(hcclDataType_t type, hcclRedOp_t operation) const noexcept {
    return folds[type].by_operation[FoldRow::position_of(operation)];
  }
};

// Returns the kernels for this processor. Keep the result: a call takes microseconds (cpuid).
[[nodiscard]] KernelTable best_kernels() noexcept;

// The kernels of one data type. Each family of types is compiled in its own source file.
struct TypeFolds {
  hcclDataType_t type;
  FoldRow row;
};
[[nodiscard]] std::span<const TypeFolds> float_folds() noexcept;
[[nodiscard]] std::span<const TypeFolds> half_folds() noexcept;
[[nodiscard]] std::span<const TypeFolds> integer_folds() noexcept;

}  // namespace hccl::reduce
