// SPDX-License-Identifier: Apache-2.0
// Simulates schedules slice by slice on a model of a cluster, and predicts how long they take. The
// model consists of latency, bandwidth and reduction speed. The transfers between a node and other
// nodes take turns on the node's NIC, separately in each direction. Credits and congestion inside
// the network are ignored. Use the times to compare algorithms, not as absolute times.
#pragma once

#include "schedule/schedule.h"
#include "schedule/shape.h"

namespace hccl::proof {

using schedule::Schedule;
using schedule::Shape;

struct LinkModel {
  double latency = 0;    // seconds
  double bandwidth = 1;  // bytes per second, each way
};

struct Cluster {
  std::vector<std::int32_t> node_of_rank;
  LinkModel network;        // between nodes: each node has one NIC, which its ranks share
  LinkModel memory;         // between ranks of a node: one link per rank
  double reduction = 0;     // bytes per second that a rank reduces; 0 if reduction takes no time
  std::uint64_t slice = 1;  // bytes; a transfer is modelled with at most 32 slices
};

// Returns the seconds until the last rank has finished, or infinity if the schedules do not
// complete. `shapes` and `schedules` hold all ranks of channel 0, then all ranks of channel 1, and
// so on. `bytes` is the size of the message or, in a collective with blocks, of one block.
[[nodiscard]] double simulate(std::span<const Shape> shapes, std::span<const Schedule> schedules,
                              const Cluster& cluster, std::uint64_t bytes);

}  // namespace hccl::proof
