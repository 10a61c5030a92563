// SPDX-License-Identifier: Apache-2.0
#include "call.h"

#include <c10/util/Exception.h>

namespace hccl_torch {

void check(hcclResult_t result, const char* function) {
  TORCH_CHECK_WITH(DistBackendError, result == hcclSuccess, "hccl_torch: ", function,
                   " failed: ", hcclGetLastErrorMessage());
}

void check(synStatus status, const char* function) {
  TORCH_CHECK_WITH(DistBackendError, status == synSuccess, "hccl_torch: ", function,
                   " failed: ", synGetLastErrorMessage());
}

}  // namespace hccl_torch
