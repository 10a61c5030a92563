// SPDX-License-Identifier: Apache-2.0
// Abstract unix sockets, which have no file, and a descriptor sent over one.
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

// Throws Error(hcclSystemError).
[[nodiscard]] FileDescriptor listen_on(const SocketName& name);

// One byte with the descriptor. False if there is no room now; errno tells.
[[nodiscard]] bool send_file(int socket, const FileDescriptor& file);

enum class Arrival : std::uint8_t { none_yet, arrived, closed };
// Receives that byte; `file` is invalid if it came without a descriptor.
[[nodiscard]] Arrival receive_file(int socket, FileDescriptor& file);

}  // namespace hccl::shm
