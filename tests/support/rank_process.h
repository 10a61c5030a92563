// SPDX-License-Identifier: Apache-2.0
// Inside a process that the supervisor started: its environment, its ranks, and the messages it
// sends.
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

// One write, so that messages of threads do not mix.
void send_message(int fd, Kind kind, int rank, const std::string& text);

// The ranks' environment holds only what the test asks for; traffic stays on the loopback
// interface.
void set_environment(const RankOptions& options, int port, int rank);

// Run the function as one rank, or as all ranks in threads of this process; whether all went well.
[[nodiscard]] bool run_one(World& world, const RankFunction& function);
[[nodiscard]] bool run_threads(const World& first, const RankFunction& function);

}  // namespace hccl::test
