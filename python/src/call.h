// SPDX-License-Identifier: Apache-2.0
// From the C API's codes to the exceptions of c10d.
#pragma once

#include <hccl.h>
#include <synapse_api.h>

namespace hccl_torch {

// Throw c10::DistBackendError with the library's text if the call failed.
void check(hcclResult_t result, const char* function);
void check(synStatus status, const char* function);

}  // namespace hccl_torch
