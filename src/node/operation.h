// SPDX-License-Identifier: Apache-2.0
// One operation while a rank is in it. Private to the engine's files.
#pragma once

#include "base/deadline.h"
#include "base/wait_limit.h"
#include "node/engine.h"
#include "node/slicing.h"

#include <optional>

namespace hccl::node {

struct Engine::Operation {
  Operation(Lane& lane_in, const CollectiveCall& call_in, int rank, int ranks,
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
  const std::uint32_t number;
  Staging* const staging;          // null if this rank's buffers are device memory
  Slicing slicing;                 // as this rank would have it, until all have arrived
  std::uint32_t slice_number = 0;  // the slice it is in
  const std::uint64_t part_bytes;  // posted by a rank that sends
  const std::uint64_t send_bytes;  // of the memory that this rank shows its peers
  const std::uint64_t recv_bytes;
  device::Placement send;  // in this rank's memory file
  device::Placement recv;
  device::Content content = device::Content::data;
  std::optional<TilePlan> plan;  // of the cooperative path
  bool mapped = false;           // all peers' buffers are in this process's page tables

  CallLookahead* ahead = nullptr;
  bool looked_ahead = false;  // at the calls that follow, which can be told only once

  // WaitBudget starts with the first sleep: what was polled before is not worth a look at the
  // clock.
  bool waiting = false;
  WaitLimit::Value limit;
  Deadline deadline = Deadline::never();
  Deadline report = Deadline::never();

  [[nodiscard]] bool eager() const { return part_bytes <= Slot::kPayloadBytes; }
  [[nodiscard]] bool stages_send() const { return staging != nullptr && staging->stages_send(); }
  [[nodiscard]] bool stages_recv() const { return staging != nullptr && staging->stages_recv(); }
  [[nodiscard]] WaitBudget wait_budget() const {
    return ahead != nullptr ? ahead->wait_budget() : WaitBudget::unlimited;
  }
  [[nodiscard]] Slice slice() const { return slicing.slice(slice_number); }
};

// An operation's turn on its lane. However it ends, unless it is left, the next call has the next
// number: a peer may still post its part of this one.
class Turn {
 public:
  Turn(Lane& lane, bool eager) : lane_(lane), eager_(eager) {}
  ~Turn() {
    if (is_left_) return;
    if (eager_) {
      lane_.finish_eager();
    } else {
      lane_.finish_cooperative();
    }
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  // It will have another.
  void leave() { is_left_ = true; }

 private:
  Lane& lane_;
  const bool eager_;
  bool is_left_ = false;
};

// Looks whether all ranks have posted their part of a slice of a lane's current operation. Does
// not look again at those that have.
class Everybody {
 public:
  Everybody(const Lane& lane, int ranks, std::uint32_t slice = 0)
      : lane_(lane), ranks_(ranks), slice_(slice) {}

  [[nodiscard]] bool arrived() {
    while (next_ < ranks_ && lane_.arrived(next_) && has_slice(lane_.slot(next_))) ++next_;
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
