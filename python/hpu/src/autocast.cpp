// SPDX-License-Identifier: Apache-2.0
// Registers autocasting for the HPU, with the lists of operations that PyTorch's accelerators
// share.
#include "registration.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>

namespace hccl_torch_hpu {

using namespace at;  // the lists use unqualified type names

void register_autocast() {
  library_for("_", c10::DispatchKey::AutocastHPU).fallback(torch::CppFunction::makeFallthrough());
  torch::Library& m = library_for("aten", c10::DispatchKey::AutocastHPU);
#define HCCL_LOWER(...) KERNEL(c10::DeviceType::HPU, __VA_ARGS__, lower_precision_fp)
#define HCCL_FP32(...) KERNEL(c10::DeviceType::HPU, __VA_ARGS__, fp32)
#define HCCL_FP32_OPTION(...) KERNEL(c10::DeviceType::HPU, __VA_ARGS__, fp32_set_opt_dtype)
#define HCCL_PROMOTE(...) KERNEL(c10::DeviceType::HPU, __VA_ARGS__, promote)
#define HCCL_REDISPATCH(...) \
  KERNEL_DIFFERENT_REDISPATCH_SIGNATURE(c10::DeviceType::HPU, __VA_ARGS__)
  AT_FORALL_LOWER_PRECISION_FP(HCCL_LOWER)
  AT_FORALL_FP32(HCCL_FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(HCCL_FP32_OPTION)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(HCCL_REDISPATCH)
  AT_FORALL_PROMOTE(HCCL_PROMOTE)
}

}  // namespace hccl_torch_hpu
