// SPDX-License-Identifier: Apache-2.0
// Finds the user who owns the other end of a TCP connection within this machine. The kernel reports
// it, so no proof is needed.
#pragma once

#include <sys/types.h>

namespace hccl::bootstrap {

struct SocketOwner {
  enum class Knowledge {
    known,
    none,     // the other end is closed, or no socket of this network namespace
    unknown,  // this kernel or sandbox does not report it
  };
  Knowledge knowledge = Knowledge::none;
  uid_t user = 0;  // if known
};

// Returns whether the other end of a TCP connection is on this machine, whichever of the machine's
// addresses it uses.
[[nodiscard]] bool peer_is_local(int socket) noexcept;

// Returns the owner of the other end of a TCP connection. Returns `none` also if this process lacks
// the descriptors or memory to ask, which an attacker might have used up.
[[nodiscard]] SocketOwner tcp_peer_owner(int socket) noexcept;

}  // namespace hccl::bootstrap
