// SPDX-License-Identifier: Apache-2.0
// Fails the calls to functions that are exported only because programs look them up, and that this
// version does not implement. Each such function passes its own __func__.
#pragma once

#include <hccl_types.h>

namespace hccl::api {

// Sets the last error to a text that names `function`. Returns hcclUnsupported.
[[nodiscard]] hcclResult_t unsupported_hccl(const char* function) noexcept;

// Sets the last error to a text that names `function`. Returns synUnsupported.
[[nodiscard]] synStatus unsupported_syn(const char* function) noexcept;

}  // namespace hccl::api
