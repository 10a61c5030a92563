// SPDX-License-Identifier: Apache-2.0
// Memory of the program that is no device memory.
#pragma once

#include <cstdint>

namespace hccl::device {

// Throws Error(hcclInvalidArgument) naming `what` if the range begins or ends where nothing is
// mapped. A hole in its middle is found when it is copied.
void check_host_range(std::uint64_t address, std::uint64_t bytes, const char* what);

}  // namespace hccl::device
