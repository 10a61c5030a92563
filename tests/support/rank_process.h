// SPDX-License-Identifier: Apache-2.0
// Runs a test's ranks in a process that the supervisor has started, and sends messages to the
// supervisor.
#pragma once

#include "ranks.h"

#include <string>

namespace hccl::test {

enum class Kind : int { report, failure, finished };

struct Header {
  Kind kind;
  int rank;
  unsigned length;
};

// Sends a message in one write, so that messages of up to PIPE_BUF bytes from several ranks do not
// interleave.
void send_message(int fd, Kind kind, int rank, const std::string& text);

// Removes all HCCL_* and LOG_LEVEL* variables. Then sets HCCL_SOCKET_IFNAME to the loopback
// interface, HCCL_NODE_ID, HCCL_COMM_ID if `options` requests it, and last the variables in
// options.environment.
void set_environment(const RankOptions& options, int port, int rank);

// Run the function as one rank, or as all ranks in threads of this process. Return whether all
// ranks succeeded.
[[nodiscard]] bool run_one(World& world, const RankFunction& function);
[[nodiscard]] bool run_threads(const World& first, const RankFunction& function);

}  // namespace hccl::test
