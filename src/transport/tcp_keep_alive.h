// SPDX-License-Identifier: Apache-2.0
// Detects that the host at the other end of a TCP connection can no longer be reached.
#pragma once

#include "transport/transport.h"

namespace hccl::transport {

// Makes the kernel send small messages at once, and probe an idle connection so that a cut link
// ends it.
void set_keep_alive(int socket, const Limits& limits);

// Returns whether the peer's host has left data or probes unanswered for `limit` or longer. The
// host of a stopped process answers both.
[[nodiscard]] bool is_silent(int socket, Deadline::Duration limit);

}  // namespace hccl::transport
