// SPDX-License-Identifier: Apache-2.0
// The cost that an algorithm promises not to exceed. The proofs check schedules against this bound,
// and docs/reference/algorithms.md lists the bounds.
#pragma once

namespace hccl::schedule {

// Upper bounds for each rank. `sent` and `received` are in units of the channel's part of a block.
// A block is the whole message, or one rank's part of a buffer that is divided among the ranks.
// `hops` is the number of latencies that the collective takes: the length of the longest chain of
// transfers. In a chain, each transfer forwards the data of the previous transfer, or belongs to a
// later step of the same rank.
struct Bound {
  double steps = 0;
  double hops = 0;
  double sent = 0;
  double received = 0;
  double peers = 0;
};

}  // namespace hccl::schedule
