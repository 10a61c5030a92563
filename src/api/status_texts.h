// SPDX-License-Identifier: Apache-2.0
// The name and the sentence of every result and status code, as data.
#pragma once

#include <hccl_types.h>
#include <synapse_api_types.h>

namespace hccl::api {

// Never null; a text of its own for each code, and one for values that are no code.
[[nodiscard]] const char* result_text(hcclResult_t result) noexcept;

// The same for statuses; shorter than STATUS_DESCRIPTION_MAX_SIZE.
[[nodiscard]] const char* status_text(synStatus status) noexcept;

// "hcclInvalidUsage", "synFailHccl". Never null.
[[nodiscard]] const char* result_name(hcclResult_t result) noexcept;
[[nodiscard]] const char* status_name(synStatus status) noexcept;

}  // namespace hccl::api
