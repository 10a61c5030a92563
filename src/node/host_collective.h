// SPDX-License-Identifier: Apache-2.0
// The base class of HostPath, HostChain and HostReads, the paths of larger collectives on host
// memory.
#pragma once

#include "node/address_range.h"
#include "node/collective_operation.h"
#include "node/host_slices.h"
#include "node/node_segment.h"
#include "node/operation_wait.h"
#include "node/stall_monitor.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hccl::node {

class HostCollective {
 public:
  HostCollective(const HostCollective&) = delete;
  HostCollective& operator=(const HostCollective&) = delete;

 protected:
  using Counter = std::atomic<std::uint32_t> SliceCounters::*;

  // `op` must have a staging buffer. `slices`: how the path divides the operation into slices.
  // `first`: the number of the operation's first slice (Lane::slices_done()).
  HostCollective(NodeSegment& node, StallMonitor& stalls, std::uint64_t cache_bytes,
                 CollectiveOperation& op, HostSlices slices, std::uint32_t first);
  ~HostCollective() = default;

  // Posts the operation, unless this rank has already done so.
  void post_once();
  // Begins the next call of the stream ahead of its turn: calls begin(operation) if this rank has
  // not posted that call yet, the call is too long for EagerPath, this rank's buffers in the call
  // are in host memory, serves(call) is true, this rank may read its input now, and posting the
  // call cannot fail. Ranks that share cores then need one round of context switches per call
  // instead of two. Does nothing after a fault, because peers may still read old slots (see
  // prepost() in post.cpp).
  template <class Serves, class Begin>
  void begin_next_call(Serves serves, Begin begin) {
    if (op_.ahead == nullptr || node_.fault().raised() || op_.lane.posted(op_.number + 1)) return;
    const CollectiveCall* const call = op_.ahead->next();
    const AddressRange result = result_of(call_);
    if (call == nullptr || !serves(*call) || !can_read_early(*call, {&result, 1})) return;
    HostStaging staging(node_.arena(), op_.staging->buffer(), *call, node_.rank(), node_.size());
    CollectiveOperation next(op_.lane, staging.staged_call(), node_.rank(), node_.size(),
                             op_.number + 1, &staging);
    if (next.short_on_host || !can_post_early(next)) return;  // EagerPath posts short data
    begin(next);
  }

  // Throws Error if this rank cannot read its send buffer or write its receive buffer. Checks only
  // buffers in host memory.
  void check_access() const;
  // Requires that all ranks have posted. Returns whether the buffers of all ranks are in host
  // memory. Throws Error if the ranks' calls do not match, or the communicator has failed.
  [[nodiscard]] bool all_on_host() const;
  // Returns whether this rank may now read the input of `next`, a later call of the stream. The
  // call must need a staging buffer, all its buffers must be in host memory, and its input must be
  // readable and must not overlap `results`, which earlier calls write.
  [[nodiscard]] bool can_read_early(const CollectiveCall& next,
                                    std::span<const AddressRange> results) const;
  // Returns whether posting `next`, a later operation, cannot fail. If it failed, the current
  // operation would report the error.
  [[nodiscard]] bool can_post_early(const CollectiveOperation& next) const;
  // Returns the memory to which this rank writes the result of `call`.
  [[nodiscard]] AddressRange result_of(const CollectiveCall& call) const;

  // Blocks until all ranks have posted the operation. Throws the recorded fault if the communicator
  // has failed.
  void await_posts();
  // Blocks until `counter` has reached `count` on all ranks, or on all senders. Throws the recorded
  // fault if the communicator has failed.
  void await(Counter counter, std::uint32_t count, AwaitedRanks ranks = AwaitedRanks::all);
  // Copies a slice of the data that this rank sends to itself.
  void copy_own_chunk(const Slice& slice) const;

  [[nodiscard]] bool reached(int rank, Counter counter, std::uint32_t count) const;
  [[nodiscard]] bool all_reached(Counter counter, std::uint32_t count) const;
  // Sets a counter of this rank to `count`, and wakes the ranks that wait for it.
  void publish(Counter counter, std::uint32_t count);

  NodeSegment& node_;
  StallMonitor& stalls_;
  const std::uint64_t cache_bytes_;
  CollectiveOperation& op_;
  const CollectiveCall& call_;  // with the program's addresses
  const HostSlices slices_;
  OperationWait wait_;
  const std::uint32_t first_slice_;
  // True if all ranks' buffers together exceed half of the caches. Copies to the program's output
  // then bypass the caches.
  const bool bypasses_cache_;
};

void copy_on_host(std::byte* to, const std::byte* from, std::uint64_t bytes, bool bypasses_cache);

}  // namespace hccl::node
