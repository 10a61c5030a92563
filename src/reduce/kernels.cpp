// SPDX-License-Identifier: Apache-2.0
// Compiles the functions for whole tiles, once per instruction set (this file includes itself
// through foreach_target.h), and assembles the table of kernels for this processor.
#include "reduce/kernels.h"

#include "reduce/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/kernels.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "reduce/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hccl::reduce::HWY_NAMESPACE {

const TileWalks* tile_walks() {
  static constexpr TileWalks kWalks{reduce_kernel, interleaved_copy_kernel, stream_copy_kernel};
  return &kWalks;
}

}  // namespace hccl::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hccl::reduce {

HWY_EXPORT(tile_walks);

KernelTable best_kernels() noexcept {
  KernelTable table{{}, *HWY_DYNAMIC_DISPATCH(tile_walks)()};
  for (const std::span<const TypeFolds> family : {float_folds(), half_folds(), integer_folds()}) {
    for (const TypeFolds& folds : family) table.folds[folds.type] = folds.row;
  }
  return table;
}

}  // namespace hccl::reduce
#endif
