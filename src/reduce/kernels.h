// SPDX-License-Identifier: Apache-2.0
// The kernels of the best instruction set this processor has, behind plain function pointers.
#pragma once

#include "reduce/reduce.h"

#include <cstddef>

namespace hccl::reduce {

// What is folded: at least two sources, and destinations, each of which may be a source.
struct Operands {
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
  // Folds the bytes [begin, end) of every source, whole elements, into every destination.
  void (*range)(const Operands& operands, std::size_t begin, std::size_t end);
};

struct KernelTable {
  static constexpr std::size_t kTypes = 3;
  static constexpr std::size_t kOperations = 3;

  FoldKernel folds[kTypes][kOperations];  // by row(type) and column(operation)
  void (*reduce)(const FoldKernel& kernel, const Operands& operands, std::size_t bytes,
                 StorePolicy policy);
  // Copies a tile past the cache.
  void (*stream_copy)(const std::byte* source, std::byte* const* destinations,
                      std::size_t destination_count, std::size_t bytes);
};

// Place in KernelTable::folds; kTypes or kOperations for what has no kernel.
[[nodiscard]] constexpr std::size_t row(hcclDataType_t type) noexcept {
  switch (type) {
    case hcclFloat32:
      return 0;
    case hcclBfloat16:
      return 1;
    case hcclInt32:
      return 2;
    default:
      return KernelTable::kTypes;
  }
}

[[nodiscard]] constexpr std::size_t column(hcclRedOp_t operation) noexcept {
  switch (operation) {
    case hcclSum:
      return 0;
    case hcclMin:
      return 1;
    case hcclMax:
      return 2;
    default:
      return KernelTable::kOperations;
  }
}

// Asks the processor (cpuid and the like, microseconds). Callers keep the answer.
[[nodiscard]] const KernelTable& best_kernels() noexcept;

}  // namespace hccl::reduce
