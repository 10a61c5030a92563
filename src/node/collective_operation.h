// SPDX-License-Identifier: Apache-2.0
// The state of a collective that a rank runs, and the collective's turn on the lane.
#pragma once

#include "base/waiter.h"
#include "call/collective_call.h"
#include "call/lookahead.h"
#include "device/arena.h"
#include "node/control_block.h"
#include "node/host_staging.h"
#include "node/lane.h"
#include "node/slicing.h"
#include "node/wait_observer.h"

#include <atomic>
#include <cstdint>

namespace hccl::node {

// The ranks whose counters a rank waits for. `senders`: the ranks that send. `in_order`: all ranks,
// each of which waits for the rank before it (HostChain).
enum class AwaitedRanks : std::uint8_t { all, senders, in_order };

struct CollectiveOperation {
  CollectiveOperation(Lane& lane_in, const CollectiveCall& call_in, int rank, int ranks,
                      std::uint32_t number_in, HostStaging* staging_in = nullptr)
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
                       : 0),
        short_on_host(staging_in != nullptr && !eager() && lane_in.has_host_payloads() &&
                      fits_host_payload(part_bytes, ranks) &&
                      is_on_host(call_in, rank, stages_send(), stages_recv())) {}

  Lane& lane;
  const CollectiveCall& call;
  const std::uint32_t number;      // on the lane
  HostStaging* const staging;      // null if this rank needs none
  Slicing slicing;                 // the same on all ranks once all have posted
  std::uint32_t slice_number = 0;  // of the current slice
  const std::uint64_t part_bytes;  // sent by each sending rank
  // The numbers of bytes in this rank's send and receive buffers that peers may access; 0 for a
  // buffer that the rank does not use.
  const std::uint64_t send_bytes;
  const std::uint64_t recv_bytes;
  // True if the lane has host payloads, the buffers of this rank are in host memory, and the data
  // fits into a host payload but not into a slot. If this holds for all ranks, the operation takes
  // the eager path.
  const bool short_on_host;
  // The placements of both buffers in this rank's memory file.
  device::Placement send;
  device::Placement recv;
  device::Content content = device::Content::data;  // of the send buffer
  Mapping mapping = Mapping::whole;                 // of this rank's buffers
  bool continues = false;    // whether this rank's input is the previous operation's result
  bool reads_peers = false;  // whether this rank has chosen HostReads
  // True if each rank computes a fixed share of the tiles. The same on all ranks once all of them
  // have posted.
  bool has_shares = false;

  // The counter that other ranks must advance before this rank can continue in HostPath, HostReads
  // or HostChain; null if this rank does not wait for a counter.
  std::atomic<std::uint32_t> SliceCounters::*awaited_counter = nullptr;
  std::uint32_t awaited_count = 0;
  AwaitedRanks awaited_ranks = AwaitedRanks::all;

  CallLookahead* ahead = nullptr;
  WaitObserver* observer = nullptr;  // watches this rank's waits; if null, StallTimer does
  bool looked_ahead = false;         // prepost() has read `ahead`, which returns each call once

  // Returns whether the data fits into a slot. The same on all ranks.
  [[nodiscard]] bool eager() const { return part_bytes <= Slot::kPayloadBytes; }
  // Returns whether `rank`, which must be this rank, writes a result to its receive buffer.
  [[nodiscard]] bool writes_result(int rank) const {
    return recv_bytes != 0 && !keeps_own_data(host_call(), rank);
  }
  // Returns whether this rank's data is posted together with the descriptor.
  [[nodiscard]] bool posts_data() const { return eager() || short_on_host; }
  // Returns the call with the addresses that the program has passed.
  [[nodiscard]] const CollectiveCall& host_call() const {
    return staging != nullptr ? staging->host_call() : call;
  }
  [[nodiscard]] bool stages_send() const { return staging != nullptr && staging->stages_send(); }
  [[nodiscard]] bool stages_recv() const { return staging != nullptr && staging->stages_recv(); }
  [[nodiscard]] WaitBudget wait_budget() const {
    return ahead != nullptr ? ahead->wait_budget() : WaitBudget::unlimited;
  }
  // Returns the number of the program's call, for error texts.
  [[nodiscard]] std::uint64_t program_number() const {
    return call.whole == nullptr ? number : call.whole_number;
  }
  [[nodiscard]] Slice slice() const { return slicing.slice(slice_number); }
};

// An operation's turn on its lane. The destructor advances the lane to the next number even if the
// operation has failed, because the next operation could otherwise take a peer's late post of the
// failed operation for its own. A suspended operation keeps its number.
class LaneTurn {
 public:
  // `uses_state`: whether the operation uses the lane's state word.
  LaneTurn(Lane& lane, bool uses_state) : lane_(lane), uses_state_(uses_state) {}
  ~LaneTurn() {
    if (suspended_) return;
    if (uses_state_) {
      lane_.finish_cooperative();
    } else {
      lane_.finish_eager();
    }
  }
  LaneTurn(const LaneTurn&) = delete;
  LaneTurn& operator=(const LaneTurn&) = delete;

  void suspend() { suspended_ = true; }
  void set_uses_state(bool uses_state) { uses_state_ = uses_state; }

 private:
  Lane& lane_;
  bool uses_state_;
  bool suspended_ = false;
};

// Checks whether all ranks have posted the lane's current operation and are ready for a slice of
// it. A rank that has passed this check is not checked again.
class PostedRanks {
 public:
  // `slices`: the number of slices for which a rank must be ready; 0 if posting is enough.
  PostedRanks(const Lane& lane, int ranks, std::uint32_t slices = 0)
      : lane_(lane), ranks_(ranks), slices_(slices) {}

  [[nodiscard]] bool all_posted() {
    while (next_ < ranks_ && lane_.has_posted(next_) && has_slice(lane_.slot(next_))) ++next_;
    return next_ == ranks_;
  }

 private:
  [[nodiscard]] bool has_slice(const Slot& slot) const {
    return slot.slice.load(std::memory_order_seq_cst) >= slices_;
  }

  const Lane& lane_;
  const int ranks_;
  const std::uint32_t slices_;
  int next_ = 0;
};

}  // namespace hccl::node
