// SPDX-License-Identifier: Apache-2.0
// The abstract unix sockets over which the ranks of a node exchange descriptors.
#pragma once

#include "base/file_descriptor.h"
#include "bootstrap/messages.h"

namespace hccl::bootstrap {

// Returns an abstract unix socket that listens for the other ranks of the node. Throws
// Error(hcclSystemError).
[[nodiscard]] FileDescriptor listen_on_node(const SocketName& name);

// Connects to the socket with this name, without blocking. On failure, returns an invalid
// descriptor and sets errno; EAGAIN means that the listener's backlog is full. Throws
// Error(hcclSystemError) if no socket can be created.
[[nodiscard]] FileDescriptor connect_to_node(const SocketName& name);

}  // namespace hccl::bootstrap
