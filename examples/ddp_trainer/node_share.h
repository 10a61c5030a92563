// SPDX-License-Identifier: Apache-2.0
// The ranks of a training that run on this machine, determined from the environment variables of
// launchers that set a master address.
#pragma once

#include "launch_environment.h"
#include "options.h"

namespace ddp_trainer {

// The ranks that -g starts on this machine. With WORLD_SIZE and NODE_RANK, these are a contiguous
// part of WORLD_SIZE ranks, after those of nodes with a lower NODE_RANK. Otherwise they are all
// ranks.
struct NodeShare {
  int first = 0;
  int here = 1;
  int ranks = 1;

  [[nodiscard]] bool is_all() const { return here == ranks; }
};

// Returns this machine's share. Throws UsageError for variables that are not numbers or contradict
// each other.
[[nodiscard]] NodeShare node_share(const Options& options,
                                   const hccl_perf::Environment& environment);

// Returns MASTER_ADDR and MASTER_PORT in the format of HCCL_COMM_ID, or an empty text if they are
// not set.
[[nodiscard]] std::string master_address(const hccl_perf::Environment& environment);

}  // namespace ddp_trainer
