// SPDX-License-Identifier: Apache-2.0
// Unix sockets in the abstract namespace. A name is not a file, and vanishes with its socket.
#pragma once

#include "base/address.h"
#include "base/file_descriptor.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace hccl {

// Returns the prefix followed by the bytes as hexadecimal digits.
[[nodiscard]] std::string abstract_name(std::string_view prefix, std::span<const std::byte> bytes);

// Returns the socket address for a name of at most 107 bytes. Adds the leading zero byte that makes
// the address abstract.
[[nodiscard]] SocketAddress abstract_address(std::string_view name) noexcept;

// Returns a non-blocking socket that listens on the name. Throws Error(hcclSystemError).
[[nodiscard]] FileDescriptor listen_on_abstract(std::string_view name);
// Does the same, but on failure returns an invalid descriptor and sets errno.
[[nodiscard]] FileDescriptor try_listen_on_abstract(std::string_view name) noexcept;
// Connects a non-blocking unix socket to the name. Returns 0 or an errno; EAGAIN means that the
// listener's backlog is full.
[[nodiscard]] int connect_to_abstract(const FileDescriptor& socket, std::string_view name) noexcept;

// Returns the user whose socket is bound to the name, even if that socket does not listen. Returns
// nothing if no socket in this network namespace has the name, or if the owner cannot be determined
// (for example before Linux 5.3, or without unix_diag).
[[nodiscard]] std::optional<uid_t> user_of_abstract_socket(std::string_view name) noexcept;

}  // namespace hccl
