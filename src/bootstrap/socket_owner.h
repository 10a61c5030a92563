// SPDX-License-Identifier: Apache-2.0
// Finds the user who owns the other end of a TCP connection within this machine. The kernel reports
// this user, so the other end need not authenticate.
#pragma once

#include <sys/types.h>

namespace hccl::bootstrap {

struct SocketOwner {
  enum class Knowledge {
    known,
    none,     // the other end is closed, or outside this network namespace
    unknown,  // this kernel or sandbox does not report it
  };
  Knowledge knowledge = Knowledge::none;
  uid_t user = 0;  // if known
};

// Returns whether the other end of a TCP connection is on this machine, by whichever of the
// machine's addresses.
[[nodiscard]] bool peer_is_local(int socket) noexcept;

// Returns the owner of the other end of a TCP connection. Also returns `none` if this process lacks
// the descriptors or memory for the query, because an attacker might have exhausted them.
[[nodiscard]] SocketOwner tcp_peer_owner(int socket) noexcept;

}  // namespace hccl::bootstrap
