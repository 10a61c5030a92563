// SPDX-License-Identifier: Apache-2.0
// Which user owns the other end of a TCP connection within this machine: the kernel knows, no proof
// is needed.
#pragma once

#include <optional>

#include <sys/types.h>

namespace hccl::bootstrap {

// Nothing if the other end is closed, is not a socket of this network namespace, or the kernel does
// not tell.
[[nodiscard]] std::optional<uid_t> tcp_peer_user(int socket) noexcept;

}  // namespace hccl::bootstrap
