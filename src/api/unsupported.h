// SPDX-License-Identifier: Apache-2.0
// The answer of functions that are exported because programs look them up, but not available in
// this version. Each passes its own __func__, so the last error names the call.
#pragma once

#include <hccl_types.h>

namespace hccl::api {

// hcclUnsupported, and a last error that names `function`.
[[nodiscard]] hcclResult_t unsupported_hccl(const char* function) noexcept;

// synUnsupported, and a last error that names `function`.
[[nodiscard]] synStatus unsupported_syn(const char* function) noexcept;

}  // namespace hccl::api
