// SPDX-License-Identifier: Apache-2.0
// Populates this process's page tables with one system call.
#pragma once

#include <cstdint>

namespace hccl::device {

// Populates the pages of a range that begins at a page boundary, for stores if `write`, and
// otherwise for loads. Returns false and sets errno on failure, for example to ENOMEM if a page is
// not mapped or memory is short, to EFAULT if an access would raise SIGBUS, or to EINVAL if a page
// does not allow the access or the kernel lacks this call.
[[nodiscard]] bool populate_pages(void* begin, std::uint64_t bytes, bool write) noexcept;

}  // namespace hccl::device
