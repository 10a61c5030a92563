// SPDX-License-Identifier: Apache-2.0
// Returns advice on a failed system call: the error number tells more than the call.
#pragma once

#include <string>

namespace hccl {

// One thing to do about this error number; `otherwise` where the number alone does not tell.
[[nodiscard]] std::string advice_on(int error, const char* otherwise);

// The same of mmap and mremap, for which ENOMEM is a limit more often than a lack of memory.
[[nodiscard]] std::string advice_on_mapping(int error);

// The same of starting a thread.
[[nodiscard]] std::string advice_on_thread(int error);

}  // namespace hccl
