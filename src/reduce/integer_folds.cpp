// SPDX-License-Identifier: Apache-2.0
// The kernels for integers.
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
std::span<const TypeFolds> integer_fold_rows() {
  static constexpr TypeFolds kRows[] = {{hcclInt8, plain::kIntegerRow<std::int8_t>},
                                        {hcclUint8, plain::kIntegerRow<std::uint8_t>},
                                        {hcclInt32, plain::kIntegerRow<std::int32_t>},
                                        {hcclUint32, plain::kIntegerRow<std::uint32_t>},
                                        {hcclInt64, plain::kIntegerRow<std::int64_t>},
                                        {hcclUint64, plain::kIntegerRow<std::uint64_t>}};
  return kRows;
}
#else
std::span<const TypeFolds> integer_fold_rows() {
  static constexpr TypeFolds kRows[] = {
      {hcclInt8, kIntegerRow<std::int8_t>},   {hcclUint8, kIntegerRow<std::uint8_t>},
      {hcclInt32, kIntegerRow<std::int32_t>}, {hcclUint32, kIntegerRow<std::uint32_t>},
      {hcclInt64, kIntegerRow<std::int64_t>}, {hcclUint64, kIntegerRow<std::uint64_t>}};
  return kRows;
}
#endif

}  // namespace hccl::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hccl::reduce {

HWY_EXPORT(integer_fold_rows);

std::span<const TypeFolds> integer_folds() noexcept {
  return HWY_DYNAMIC_DISPATCH(integer_fold_rows)();
}

}  // namespace hccl::reduce
#endif
