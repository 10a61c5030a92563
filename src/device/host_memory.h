// SPDX-License-Identifier: Apache-2.0
// Host memory: any memory of the program that is not device memory.
#pragma once

#include <cstdint>

namespace hccl::device {

// Returns the page size of the system, which is larger than kPageBytes on some machines.
[[nodiscard]] std::uint64_t system_page_bytes();

// Throws Error(hcclInvalidArgument), which names `what`, if `address` is null, the range wraps, or
// nothing is mapped at its beginning or end. Does not detect a hole in between; copies do. Does not
// ask the kernel again about a buffer that this thread has verified in the current host epoch
// (VerifiedBuffers).
void check_host_range(std::uint64_t address, std::uint64_t bytes, const char* what);

enum class HostAccess : std::uint8_t { read, write };

// Checks that this process can access a range with plain loads and stores, which raise a signal at
// a bad address. Takes about 1.5 us for a range that this thread has found accessible before
// (AccessibleRanges); otherwise checks every page. Throws Error(hcclInvalidArgument), which names
// `what` and the first inaccessible address, and Error(hcclSystemError) if no file descriptor is
// left for the check.
void check_host_access(std::uint64_t address, std::uint64_t bytes, HostAccess access,
                       const char* what);
// Does the same, but always checks every page.
void check_host_pages(std::uint64_t address, std::uint64_t bytes, HostAccess access,
                      const char* what);
// Calls check_host_access(), unless this thread has verified the buffer in the current host epoch
// (VerifiedBuffers).
void require_host_access(std::uint64_t address, std::uint64_t bytes, HostAccess access,
                         const char* what);
// Returns whether require_host_access() would succeed. May return false for accessible memory, for
// example on kernels that cannot populate pages on request.
[[nodiscard]] bool has_host_access(std::uint64_t address, std::uint64_t bytes, HostAccess access);

}  // namespace hccl::device
