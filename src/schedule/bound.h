// SPDX-License-Identifier: Apache-2.0
// The cost that an algorithm promises not to exceed. The proofs compare it with the schedules, and
// docs/reference/algorithms.md lists it.
#pragma once

namespace hccl::schedule {

// Bounds that no rank of a schedule exceeds. Data is counted in multiples of the channel's part of
// a block. A block is the whole message, or one rank's part of a buffer that is divided among the
// ranks. `hops` is the number of latencies that the collective takes: the length of the longest
// chain of transfers in which each transfer waits for the one before, because it forwards the data
// of that transfer or belongs to a later step of the same rank.
struct Bound {
  double steps = 0;
  double hops = 0;
  double sent = 0;
  double received = 0;
  double peers = 0;
};

}  // namespace hccl::schedule
