// SPDX-License-Identifier: Apache-2.0
// The kernels for float and double.
#include "reduce/kernels.h"
#include "reduce/plain.h"
#include "reduce/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/float_folds.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "reduce/fold-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hccl::reduce::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR
std::span<const TypeFolds> float_fold_rows() {
  static constexpr TypeFolds kRows[] = {{hcclFloat32, plain::kRow<plain::Float<float>>},
                                        {hcclFloat64, plain::kRow<plain::Float<double>>}};
  return kRows;
}
#else
std::span<const TypeFolds> float_fold_rows() {
  static constexpr TypeFolds kRows[] = {{hcclFloat32, kLaneRow<float>},
                                        {hcclFloat64, kLaneRow<double>}};
  return kRows;
}
#endif

}  // namespace hccl::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hccl::reduce {

HWY_EXPORT(float_fold_rows);

std::span<const TypeFolds> float_folds() noexcept {
  return HWY_DYNAMIC_DISPATCH(float_fold_rows)();
}

}  // namespace hccl::reduce
#endif
