// SPDX-License-Identifier: Apache-2.0
// Remedies for failed system calls, by errno value.
#pragma once

#include <string>

namespace hccl {

// Returns a remedy for the errno value, or `otherwise` if the value does not suggest one.
[[nodiscard]] std::string advice_on(int error, const char* otherwise);

// Returns a remedy for a failed mmap or mremap. There, ENOMEM more often means a limit than a lack
// of memory.
[[nodiscard]] std::string advice_on_mapping(int error);

// Returns a remedy for a failure to start a thread.
[[nodiscard]] std::string advice_on_thread(int error);

}  // namespace hccl
