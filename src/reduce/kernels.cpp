// SPDX-License-Identifier: Apache-2.0
// The kernels, compiled once per instruction set (this file includes itself through
// foreach_target.h), and the choice among them.
#include "reduce/kernels.h"

// Accumulators are arrays of vectors, which the scalable vector extensions cannot hold; AArch64
// runs NEON. Of x86 the targets that differ for these kernels: SSE2, AVX2, AVX-512; each costs
// compile time.
#define HWY_DISABLED_TARGETS \
  (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV | HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/kernels.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "reduce/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hccl::reduce::HWY_NAMESPACE {

const KernelTable* kernel_table() {
  static constexpr KernelTable kTable{
      {{kFoldKernel<FloatSum>, kFoldKernel<FloatMin>, kFoldKernel<FloatMax>},
       {kFoldKernel<Bfloat16<FloatSum>>, kFoldKernel<Bfloat16<FloatMin>>,
        kFoldKernel<Bfloat16<FloatMax>>},
       {kFoldKernel<Int32Sum>, kFoldKernel<Int32Min>, kFoldKernel<Int32Max>}},
      reduce_kernel,
      stream_copy_kernel};
  return &kTable;
}

}  // namespace hccl::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hccl::reduce {

HWY_EXPORT(kernel_table);

const KernelTable& best_kernels() noexcept { return *HWY_DYNAMIC_DISPATCH(kernel_table)(); }

}  // namespace hccl::reduce
#endif
