// SPDX-License-Identifier: Apache-2.0
// Detects that the host at the other end of a TCP connection can no longer be reached.
#pragma once

#include "transport/transport.h"

namespace hccl::transport {

// Makes the kernel send small messages without delay, and end an idle connection to a host that no
// longer answers.
void set_keep_alive(int socket, const ConnectionLimits& limits);

// Returns whether the peer's host has acknowledged nothing for `limit` or longer, despite several
// retransmissions or probes. The host of a stopped process acknowledges both.
[[nodiscard]] bool is_silent(int socket, Deadline::Duration limit);

}  // namespace hccl::transport
