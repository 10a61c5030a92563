// SPDX-License-Identifier: Apache-2.0
// Remedies for failed system calls, by error number.
#pragma once

#include <string>

namespace hccl {

// Returns a remedy for this error number, or `otherwise` if the number alone does not suggest one.
[[nodiscard]] std::string advice_on(int error, const char* otherwise);

// Does the same for mmap and mremap, where ENOMEM more often means a limit than a lack of memory.
[[nodiscard]] std::string advice_on_mapping(int error);

// Does the same for starting a thread.
[[nodiscard]] std::string advice_on_thread(int error);

}  // namespace hccl
