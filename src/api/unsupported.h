// SPDX-License-Identifier: Apache-2.0
// Fails the calls of functions that are exported because programs look them up, but are not
// available in this version. Each function passes its own __func__, so that the last error names
// it.
#pragma once

#include <hccl_types.h>

namespace hccl::api {

// Sets a last error that names `function`. Returns hcclUnsupported.
[[nodiscard]] hcclResult_t unsupported_hccl(const char* function) noexcept;

// Sets a last error that names `function`. Returns synUnsupported.
[[nodiscard]] synStatus unsupported_syn(const char* function) noexcept;

}  // namespace hccl::api
