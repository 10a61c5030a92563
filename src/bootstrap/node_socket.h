// SPDX-License-Identifier: Apache-2.0
// The abstract unix sockets over which the ranks of a node exchange descriptors.
#pragma once

#include "base/file_descriptor.h"
#include "bootstrap/messages.h"

namespace hccl::bootstrap {

// Returns a listening abstract socket through which processes of this user reach this rank. Throws
// Error(hcclSystemError).
[[nodiscard]] FileDescriptor listen_on_node(const SocketName& name);

// Returns a non-blocking connection to the socket of that name. The connection is invalid, with
// errno EAGAIN, if the listener's backlog is full. Throws Error(hcclSystemError).
[[nodiscard]] FileDescriptor connect_to_node(const SocketName& name);

}  // namespace hccl::bootstrap
