// SPDX-License-Identifier: Apache-2.0
// The kernels of the best instruction set this processor has, behind plain function pointers.
#pragma once

#include "reduce/reduce.h"

#include <cstddef>

namespace hccl::reduce {

// The memory of a fold: at least two sources, and destinations, each of which may be a source.
struct FoldOperands {
  const std::byte* const* sources;
  std::size_t source_count;
  std::byte* const* destinations;
  std::size_t destination_count;
};

// How one data type folds under one reduction.
struct FoldKernel {
  // Blocks are multiples of this, whatever the length of a vector.
  static constexpr std::size_t kBlockUnit = 512;

  std::size_t element_bytes;
  // Folds the bytes [begin, end) of every source, a multiple of kBlockUnit, into `out`, which may
  // be one of them at `begin`.
  void (*block)(const std::byte* const* sources, std::size_t source_count, std::size_t begin,
                std::size_t end, std::byte* out);
  // The same past the cache into `out`, which is on a line.
  void (*streamed_block)(const std::byte* const* sources, std::size_t source_count,
                         std::size_t begin, std::size_t end, std::byte* out);
  // Folds the bytes [begin, end) of every source, whole elements, into every destination.
  void (*range)(const FoldOperands& operands, std::size_t begin, std::size_t end);
};

// The kernels of one data type, by hcclRedOp_t, then the bitwise ones, which floats have not.
struct FoldRow {
  static constexpr std::size_t kBitwise = hcclOpNone;  // where those begin
  static constexpr std::size_t kOperations = kBitwise + 3;

  FoldKernel by_operation[kOperations];

  [[nodiscard]] static constexpr std::size_t place_of(hcclRedOp_t operation) noexcept {
    return is_bitwise(operation)
               ? kBitwise + static_cast<std::size_t>(operation - hcclEmulationBitAnd)
               : static_cast<std::size_t>(operation);
  }
};

struct TileWalks {
  void (*reduce)(const FoldKernel& kernel, const FoldOperands& operands, std::size_t bytes,
                 StorePolicy policy);
  // Copies a tile to destinations other than itself, line by line.
  void (*interleaved_copy)(const std::byte* source, std::byte* const* destinations,
                           std::size_t destination_count, std::size_t bytes);
  // Copies a tile past the cache.
  void (*stream_copy)(const std::byte* source, std::byte* const* destinations,
                      std::size_t destination_count, std::size_t bytes);
};

struct KernelTable {
  FoldRow folds[hcclNumTypes];  // by hcclDataType_t
  TileWalks walks;

  [[nodiscard]] const FoldKernel& fold(hcclDataType_t type, hcclRedOp_t operation) const noexcept {
    return folds[type].by_operation[FoldRow::place_of(operation)];
  }
};

// Asks the processor (cpuid and the like, microseconds). Callers keep the answer.
[[nodiscard]] KernelTable best_kernels() noexcept;

// The parts of it: float, double; half, bfloat16; int8, uint8, int32, uint32, int64, uint64.
[[nodiscard]] const FoldRow* float_folds() noexcept;
[[nodiscard]] const FoldRow* half_folds() noexcept;
[[nodiscard]] const FoldRow* integer_folds() noexcept;

}  // namespace hccl::reduce
