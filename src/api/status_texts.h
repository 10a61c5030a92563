// SPDX-License-Identifier: Apache-2.0
// The name and the description of every result and status code.
#pragma once

#include <hccl_types.h>
#include <synapse_api_types.h>

namespace hccl::api {

// Returns the description of a result code; never null. All unknown codes share one description.
[[nodiscard]] const char* result_text(hcclResult_t result) noexcept;

// Returns the description of a status; never null. All unknown values share one description. Every
// description is shorter than STATUS_DESCRIPTION_MAX_SIZE.
[[nodiscard]] const char* status_text(synStatus status) noexcept;

// Return the name of a code, such as "hcclInvalidUsage" or "synFailHccl"; never null.
[[nodiscard]] const char* result_name(hcclResult_t result) noexcept;
[[nodiscard]] const char* status_name(synStatus status) noexcept;

}  // namespace hccl::api
