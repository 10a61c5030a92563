// SPDX-License-Identifier: Apache-2.0
// Reports calls to functions that this version exports, because programs look them up, but does not
// implement. Each of these functions passes its own __func__.
#pragma once

#include <hccl_types.h>

namespace hccl::api {

// Sets the last error to a text that names `function`. Returns hcclUnsupported.
[[nodiscard]] hcclResult_t unsupported_hccl(const char* function) noexcept;

// Sets the last error to a text that names `function`. Returns synUnsupported.
[[nodiscard]] synStatus unsupported_syn(const char* function) noexcept;

}  // namespace hccl::api
