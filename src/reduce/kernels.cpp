// SPDX-License-Identifier: Apache-2.0
// Compiles the walks over a tile once per instruction set (this file includes itself through
// foreach_target.h), and assembles the table for this processor.
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
  const FoldRow* const floats = float_folds();
  const FoldRow* const halves = half_folds();
  const FoldRow* const integers = integer_folds();
  KernelTable table{{}, *HWY_DYNAMIC_DISPATCH(tile_walks)()};
  table.folds[hcclInt8] = integers[0];
  table.folds[hcclUint8] = integers[1];
  table.folds[hcclInt32] = integers[2];
  table.folds[hcclUint32] = integers[3];
  table.folds[hcclInt64] = integers[4];
  table.folds[hcclUint64] = integers[5];
  table.folds[hcclFloat16] = halves[0];
  table.folds[hcclBfloat16] = halves[1];
  table.folds[hcclFloat32] = floats[0];
  table.folds[hcclFloat64] = floats[1];
  return table;
}

}  // namespace hccl::reduce
#endif
