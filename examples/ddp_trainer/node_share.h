// SPDX-License-Identifier: Apache-2.0
// Determines the ranks that run on this machine, and the address at which all ranks meet, from the
// environment.
#pragma once

#include "launch_environment.h"
#include "options.h"

namespace ddp_trainer {

// The ranks that -g starts on this machine. If WORLD_SIZE and NODE_RANK are set, there are
// WORLD_SIZE ranks, and each machine starts the next `here` of them, in the order of NODE_RANK.
// Otherwise this machine starts all ranks.
struct NodeShare {
  int first = 0;
  int here = 1;
  int ranks = 1;

  [[nodiscard]] bool is_all() const { return here == ranks; }
};

// Returns this machine's share. If WORLD_SIZE and NODE_RANK are set, throws UsageError if one of
// them is not a valid number, if they contradict each other or -g, or if -g is not given.
[[nodiscard]] NodeShare node_share(const Options& options,
                                   const hccl_perf::Environment& environment);

// Returns MASTER_ADDR and MASTER_PORT in the format of HCCL_COMM_ID, or an empty string if one of
// them is not set. Throws UsageError if MASTER_PORT is not a port number.
[[nodiscard]] std::string master_address(const hccl_perf::Environment& environment);

}  // namespace ddp_trainer
