// SPDX-License-Identifier: Apache-2.0
// Abstract unix sockets, which have no file, and the transfer of a descriptor over one.
#pragma once

#include "base/address.h"
#include "base/file_descriptor.h"
#include "base/secret.h"

#include <cstdint>
#include <string>

namespace hccl::shm {

using SocketName = Secret;  // random

[[nodiscard]] SocketAddress abstract_address(const SocketName& name);
[[nodiscard]] std::string name_text(const SocketName& name);

// Returns a listening, non-blocking socket. Throws Error(hcclSystemError).
[[nodiscard]] FileDescriptor listen_on(const SocketName& name);

// Sends one byte with the descriptor. Does not block. Returns false and sets errno on failure, for
// example EAGAIN if the socket's buffer is full.
[[nodiscard]] bool send_file(int socket, const FileDescriptor& file);

enum class Arrival : std::uint8_t { none_yet, arrived, closed };
// Receives the byte and the descriptor from send_file(). Does not block. Returns `closed` if the
// peer has closed the connection or the call fails, and `none_yet` if nothing has arrived. `file`
// stays invalid if the byte came without a descriptor.
[[nodiscard]] Arrival receive_file(int socket, FileDescriptor& file);

}  // namespace hccl::shm
