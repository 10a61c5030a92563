// SPDX-License-Identifier: Apache-2.0
// Memory of the program that is no device memory.
#pragma once

#include <cstdint>

namespace hccl::device {

// Throws Error(hcclInvalidArgument) naming `what` if the range begins or ends where nothing is
// mapped. A hole in its middle is found when it is copied.
void check_host_range(std::uint64_t address, std::uint64_t bytes, const char* what);

enum class HostAccess : std::uint8_t { read, write };

// Tries every page of the range, before code of this process uses it, to which a bad address is a
// signal and no error. Writing stores what is there already. Costs about 40 ns a page to read and
// 80 to write. Throws Error: hcclInvalidArgument naming `what` and the first address that cannot be
// accessed so, hcclSystemError if there is no descriptor left to ask with.
void require_host_access(std::uint64_t address, std::uint64_t bytes, HostAccess access,
                         const char* what);

}  // namespace hccl::device
