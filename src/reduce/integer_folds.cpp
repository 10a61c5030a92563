// SPDX-License-Identifier: Apache-2.0
// The kernels of the integers.
#include "reduce/kernels.h"
#include "reduce/plain.h"
#include "reduce/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/integer_folds.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "reduce/fold-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hccl::reduce::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR
const FoldRow* integer_fold_rows() {
  static constexpr FoldRow kRows[] = {
      plain::kIntegerRow<std::int8_t>,  plain::kIntegerRow<std::uint8_t>,
      plain::kIntegerRow<std::int32_t>, plain::kIntegerRow<std::uint32_t>,
      plain::kIntegerRow<std::int64_t>, plain::kIntegerRow<std::uint64_t>};
  return kRows;
}
#else
const FoldRow* integer_fold_rows() {
  static constexpr FoldRow kRows[] = {kIntegerRow<std::int8_t>,  kIntegerRow<std::uint8_t>,
                                      kIntegerRow<std::int32_t>, kIntegerRow<std::uint32_t>,
                                      kIntegerRow<std::int64_t>, kIntegerRow<std::uint64_t>};
  return kRows;
}
#endif

}  // namespace hccl::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hccl::reduce {

HWY_EXPORT(integer_fold_rows);

const FoldRow* integer_folds() noexcept { return HWY_DYNAMIC_DISPATCH(integer_fold_rows)(); }

}  // namespace hccl::reduce
#endif
