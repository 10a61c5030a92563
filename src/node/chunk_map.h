// SPDX-License-Identifier: Apache-2.0
// Maps the chunks that the ranks send in a collective to the chunks that they receive.
#pragma once

#include "call/collective.h"
#include "call/collective_call.h"

namespace hccl::node {

// One chunk in the buffer of each rank in [first_rank, end_rank).
struct RankChunks {
  int first_rank;
  int end_rank;
  int chunk;

  [[nodiscard]] bool has(int rank) const { return first_rank <= rank && rank < end_rank; }
};

class ChunkMap {
 public:
  ChunkMap(const CollectiveCall& call, int ranks)
      : traits_(call.traits()), root_(call.root), ranks_(ranks) {}

  // Returns the sent chunks that make up the received chunk `chunk` of `rank`: a single chunk, or
  // the chunks to be reduced in rank order.
  [[nodiscard]] RankChunks sources(int rank, int chunk) const {
    const int sent = traits_.has_blocks_in_input ? rank : 0;
    if (traits_.reduces) return {0, ranks_, sent};
    const int source = traits_.senders == RankSet::root ? root_ : chunk;
    return {source, source + 1, sent};
  }

  // Returns a set of received chunks that all have the same sources. `number` identifies the set:
  // the receiving rank in a reduce-scatter, the sending rank in an all-gather, and 0 otherwise. Do
  // not call for an all-to-all, in which each chunk has a source of its own.
  [[nodiscard]] RankChunks destinations(int number) const {
    if (traits_.receivers == RankSet::root) return {root_, root_ + 1, 0};
    if (traits_.has_blocks_in_input) return {number, number + 1, 0};
    return {0, ranks_, number};
  }

 private:
  const CollectiveTraits& traits_;
  int root_;
  int ranks_;
};

}  // namespace hccl::node
