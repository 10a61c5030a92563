// SPDX-License-Identifier: Apache-2.0
// Descriptors that travel with a message over a unix socket (SCM_RIGHTS).
#pragma once

#include "base/file_descriptor.h"

#include <array>
#include <cstddef>
#include <deque>
#include <span>

#include <sys/socket.h>

namespace hccl {

// Room for the descriptors of one message.
template <std::size_t Count>
struct alignas(cmsghdr) DescriptorBuffer {
  std::array<std::byte, CMSG_SPACE(Count * sizeof(int))> bytes{};
};

// Makes a message carry descriptors, at least one. `buffer` must have room for them and outlive the
// message.
void attach_descriptors(msghdr& message, std::span<std::byte> buffer,
                        std::span<const int> descriptors) noexcept;
// Appends the descriptors that have arrived with a message to `taken`. Returns false if some of
// them are lost, because this process may not open that many files.
[[nodiscard]] bool take_descriptors(msghdr& message, std::deque<FileDescriptor>& taken);

}  // namespace hccl
