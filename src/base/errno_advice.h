// SPDX-License-Identifier: Apache-2.0
// Remedies for failed system calls, by errno value.
#pragma once

#include <string>

namespace hccl {

// Returns a remedy for the errno value, or `otherwise` if the value does not suggest one.
[[nodiscard]] std::string advice_on(int error, const char* otherwise);

// Returns a remedy for a failed mmap or mremap. ENOMEM from these calls usually means that a limit
// has been reached, not that memory is short.
[[nodiscard]] std::string advice_on_mapping(int error);

// Returns a remedy for a failure to start a thread.
[[nodiscard]] std::string advice_on_thread(int error);

}  // namespace hccl
