// SPDX-License-Identifier: Apache-2.0
// Finds the user who owns the peer's end of a TCP connection within this machine. The kernel
// reports this user, so the peer need not authenticate.
#pragma once

#include "base/address.h"

#include <sys/types.h>

namespace hccl::bootstrap {

struct SocketOwner {
  enum class Knowledge {
    known,
    none,     // the other end is closed, or outside this network namespace
    unknown,  // this kernel or sandbox does not report owners
  };
  Knowledge knowledge = Knowledge::none;
  uid_t user = 0;  // if known
};

// Returns true if the peer of a TCP connection is on this machine, whichever of the machine's
// addresses it uses.
[[nodiscard]] bool peer_is_local(int socket) noexcept;

// Returns the owner of the peer's end of a TCP connection. Also returns `none` if this process
// lacks descriptors or memory for the query: an attacker may have exhausted them to hide who owns
// that end.
[[nodiscard]] SocketOwner tcp_peer_owner(int socket) noexcept;
// Returns the owner of the socket that listens at an address of this machine.
[[nodiscard]] SocketOwner tcp_listener_owner(const Address& address) noexcept;

}  // namespace hccl::bootstrap
