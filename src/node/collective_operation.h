// SPDX-License-Identifier: Apache-2.0
// The state of a collective that a rank runs, and its turn on the rank's lane.
#pragma once

#include "base/waiter.h"
#include "call/collective_call.h"
#include "call/lookahead.h"
#include "device/arena.h"
#include "node/control_block.h"
#include "node/lane.h"
#include "node/slicing.h"
#include "node/staging.h"

#include <atomic>
#include <cstdint>

namespace hccl::node {

struct CollectiveOperation {
  CollectiveOperation(Lane& lane_in, const CollectiveCall& call_in, int rank, int ranks,
                      std::uint32_t number_in, Staging* staging_in = nullptr)
      : lane(lane_in),
        call(call_in),
        number(number_in),
        staging(staging_in),
        slicing(call_in, ranks, staging_in != nullptr),
        part_bytes(slicing.buffer_bytes(false, send_chunks(call_in, ranks))),
        send_bytes(sends(call_in, rank)
                       ? slicing.buffer_bytes(stages_send(), send_chunks(call_in, ranks))
                       : 0),
        recv_bytes(receives(call_in, rank)
                       ? slicing.buffer_bytes(stages_recv(), recv_chunks(call_in, ranks))
                       : 0) {}

  Lane& lane;
  const CollectiveCall& call;
  const std::uint32_t number;  // on the lane
  Staging* const staging;      // null if this rank's buffers are device memory
  Slicing slicing;             // this rank's own until all ranks have posted, then the common one
  std::uint32_t slice_number = 0;  // of the current slice
  const std::uint64_t part_bytes;  // sent by each sending rank
  const std::uint64_t send_bytes;  // size of this rank's buffers that peers may access
  const std::uint64_t recv_bytes;
  device::Placement send;  // of the buffers in this rank's memory file
  device::Placement recv;
  device::Content content = device::Content::data;  // of the send buffer

  CallLookahead* ahead = nullptr;
  bool looked_ahead = false;  // `ahead` returns each call only once

  [[nodiscard]] bool eager() const { return part_bytes <= Slot::kPayloadBytes; }
  [[nodiscard]] bool stages_send() const { return staging != nullptr && staging->stages_send(); }
  [[nodiscard]] bool stages_recv() const { return staging != nullptr && staging->stages_recv(); }
  [[nodiscard]] WaitBudget wait_budget() const {
    return ahead != nullptr ? ahead->wait_budget() : WaitBudget::unlimited;
  }
  [[nodiscard]] Slice slice() const { return slicing.slice(slice_number); }
};

// An operation's turn on its lane. The destructor advances the lane to the next number even if the
// operation has failed, because a peer may still post its part of the failed operation. A suspended
// operation keeps its number.
class LaneTurn {
 public:
  LaneTurn(Lane& lane, bool eager) : lane_(lane), eager_(eager) {}
  ~LaneTurn() {
    if (suspended_) return;
    if (eager_) {
      lane_.finish_eager();
    } else {
      lane_.finish_cooperative();
    }
  }
  LaneTurn(const LaneTurn&) = delete;
  LaneTurn& operator=(const LaneTurn&) = delete;

  void suspend() { suspended_ = true; }

 private:
  Lane& lane_;
  const bool eager_;
  bool suspended_ = false;
};

// Checks whether all ranks have posted their part of a slice of the lane's current operation. A
// rank that is known to have posted is not checked again.
class PostedRanks {
 public:
  PostedRanks(const Lane& lane, int ranks, std::uint32_t slice = 0)
      : lane_(lane), ranks_(ranks), slice_(slice) {}

  [[nodiscard]] bool all_posted() {
    while (next_ < ranks_ && lane_.has_posted(next_) && has_slice(lane_.slot(next_))) ++next_;
    return next_ == ranks_;
  }

 private:
  [[nodiscard]] bool has_slice(const Slot& slot) const {
    return slice_ == 0 || slot.slice.load(std::memory_order_seq_cst) >= slice_;
  }

  const Lane& lane_;
  const int ranks_;
  const std::uint32_t slice_;
  int next_ = 0;
};

}  // namespace hccl::node
