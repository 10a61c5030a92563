// SPDX-License-Identifier: Apache-2.0
// Predicts what schedules would cost on a cluster that is not there: latency, bandwidth and
// reduction, slice by slice, where the transfers of a node take turns on its network card. No
// congestion inside the network, no credits: a model to choose algorithms by, not to quote.
#pragma once

#include "schedule/schedule.h"
#include "schedule/shape.h"

namespace hccl::schedule {

struct Link {
  double latency = 0;    // seconds
  double bandwidth = 1;  // bytes per second, each way
};

struct Cluster {
  std::vector<std::int32_t> node_of_rank;
  Link network;             // between nodes: a card per node, which its ranks share
  Link memory;              // between ranks of a node: each rank its own
  double reduction = 0;     // bytes per second that a rank folds; 0: it takes no time
  std::uint64_t slice = 1;  // bytes; a long transfer is taken to have 32 slices at most
};

// In the order of all ranks of channel 0, all of channel 1, and so on. bytes: of the message, or of
// one block. Seconds until the last rank has finished; infinite if they do not complete.
[[nodiscard]] double simulate(std::span<const Shape> shapes, std::span<const Schedule> schedules,
                              const Cluster& cluster, std::uint64_t bytes);

}  // namespace hccl::schedule
