// SPDX-License-Identifier: Apache-2.0
// The kernels for half and bfloat16.
#include "reduce/kernels.h"
#include "reduce/plain.h"
#include "reduce/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/half_folds.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "reduce/fold-inl.h"
#include "reduce/halves-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hccl::reduce::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR
std::span<const TypeFolds> half_fold_rows() {
  static constexpr TypeFolds kRows[] = {{hcclFloat16, plain::kRow<plain::Float16>},
                                        {hcclBfloat16, plain::kRow<plain::Bfloat16>}};
  return kRows;
}
#else
template <class Packing>
inline constexpr FoldRow kRow{
    {kFoldKernel<Halves<Packing, Sum<float> > >, kFoldKernel<Halves<Packing, Product<float> > >,
     kFoldKernel<Halves<Packing, Minimum<float> > >, kFoldKernel<Halves<Packing, Maximum<float> > >,
     kFoldKernel<Halves<Packing, Average<float> > >}};

std::span<const TypeFolds> half_fold_rows() {
  static constexpr TypeFolds kRows[] = {{hcclFloat16, kRow<Float16Lanes>},
                                        {hcclBfloat16, kRow<Bfloat16Lanes>}};
  return kRows;
}
#endif

}  // namespace hccl::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hccl::reduce {

HWY_EXPORT(half_fold_rows);

std::span<const TypeFolds> half_folds() noexcept { return HWY_DYNAMIC_DISPATCH(half_fold_rows)(); }

}  // namespace hccl::reduce
#endif
