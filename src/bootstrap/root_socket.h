// SPDX-License-Identifier: Apache-2.0
// The abstract unix socket through which ranks on the root server's host join. Each end requires
// that it may inspect the other, so these connections need no encryption: the library does not
// protect such processes from each other.
#pragma once

#include "base/file_descriptor.h"
#include "bootstrap/unique_id.h"

#include <string>

namespace hccl::bootstrap {

// Returns the name of the server's socket, without the leading zero byte.
[[nodiscard]] std::string root_socket_name(const UniqueId& id);

// Returns a socket that listens for ranks of this id in the same network namespace. If unix sockets
// are not available, or the name is taken, logs this and returns an invalid descriptor: the ranks
// then join over TCP.
[[nodiscard]] FileDescriptor listen_for_local_ranks(const UniqueId& id);

// Connects to the server of this id, without blocking. Returns an invalid descriptor if there is no
// such server in this network namespace, peer_may_be_inspected() returns false for it, or its
// backlog is full.
[[nodiscard]] FileDescriptor connect_to_local_server(const UniqueId& id);

}  // namespace hccl::bootstrap
