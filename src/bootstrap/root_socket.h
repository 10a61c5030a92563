// SPDX-License-Identifier: Apache-2.0
// The abstract unix socket through which ranks on the root server's host join. Each end makes sure
// that the other could be traced, so these connections need no encryption: the processes could read
// each other's memory anyway.
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
// such server in this network namespace, or peer_could_be_traced() returns false for it.
[[nodiscard]] FileDescriptor connect_to_local_server(const UniqueId& id);

}  // namespace hccl::bootstrap
