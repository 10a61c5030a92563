// SPDX-License-Identifier: Apache-2.0
// This machine's share of a training, in the variables of launchers that know a master's address.
#pragma once

#include "launch_environment.h"
#include "options.h"

namespace ddp_trainer {

// The ranks that -g starts here: all, or with WORLD_SIZE and NODE_RANK (and no RANK, which is for a
// single rank) as many of WORLD_SIZE, after those of the nodes before.
struct NodeShare {
  int first = 0;
  int here = 1;
  int ranks = 1;

  [[nodiscard]] bool is_all() const { return here == ranks; }
};

// Throws UsageError for variables that are no numbers or do not fit each other.
[[nodiscard]] NodeShare node_share(const Options& options,
                                   const hccl_perf::Environment& environment);

// MASTER_ADDR and MASTER_PORT as HCCL_COMM_ID takes an address; empty if they are not set.
[[nodiscard]] std::string master_address(const hccl_perf::Environment& environment);

}  // namespace ddp_trainer
