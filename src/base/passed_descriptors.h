// SPDX-License-Identifier: Apache-2.0
// Sends and receives file descriptors with messages over unix sockets (SCM_RIGHTS).
#pragma once

#include "base/file_descriptor.h"

#include <array>
#include <cstddef>
#include <deque>
#include <span>

#include <sys/socket.h>

namespace hccl {

// A control buffer that holds the descriptors of one message.
template <std::size_t Count>
struct alignas(cmsghdr) DescriptorBuffer {
  std::array<std::byte, CMSG_SPACE(Count * sizeof(int))> bytes{};
};

// Attaches one or more descriptors to a message. `buffer` must have room for all of them (see
// DescriptorBuffer), and must outlive the message.
void attach_descriptors(msghdr& message, std::span<std::byte> buffer,
                        std::span<const int> descriptors) noexcept;
// Appends to `taken` the descriptors that have arrived with a message. Returns false if some were
// lost, because the control buffer was too small or this process has reached its limit on open
// files.
[[nodiscard]] bool take_descriptors(msghdr& message, std::deque<FileDescriptor>& taken);

}  // namespace hccl
