// SPDX-License-Identifier: Apache-2.0
// The name and the text of every result and status code.
#pragma once

#include <hccl_types.h>
#include <synapse_api_types.h>

namespace hccl::api {

// Returns the text of a result code; never null. Values that are not result codes share one text.
[[nodiscard]] const char* result_text(hcclResult_t result) noexcept;

// Returns the text of a status; never null. Values that are not statuses share one text. A text is
// shorter than STATUS_DESCRIPTION_MAX_SIZE.
[[nodiscard]] const char* status_text(synStatus status) noexcept;

// Return the name of a code, such as "hcclInvalidUsage" or "synFailHccl"; never null.
[[nodiscard]] const char* result_name(hcclResult_t result) noexcept;
[[nodiscard]] const char* status_name(synStatus status) noexcept;

}  // namespace hccl::api
