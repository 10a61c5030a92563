// SPDX-License-Identifier: Apache-2.0
// The multi-node back end's state for one stream. Divides calls into parts. Runs parts among the
// ranks of a node in shared memory, and parts among the ranks of a column over connections. A call
// that cannot be divided runs over the connections of all ranks.
#pragma once

#include "call/backend.h"
#include "device/arena_buffer.h"
#include "multinode/call_parts.h"
#include "multinode/parts_lookahead.h"
#include "network/call_watchdog.h"
#include "network/schedule_group.h"
#include "network/schedule_runner.h"
#include "network/stream_connections.h"
#include "node/engine.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace hccl::multinode {

class MultiNodeBackend;

class MultiNodeStream final : public BackendStream {
 public:
  // `flat`: the stream's connections between all ranks. Both arguments must outlive the object.
  MultiNodeStream(MultiNodeBackend& backend, network::StreamConnections& flat);
  ~MultiNodeStream() override;

  void begin_collectives(std::uint32_t ordinal) override;
  void number(PointToPoint& call) override { flat_.number(call); }
  bool run(const CollectiveCall& call, std::uint64_t staging, CallLookahead& ahead) override;
  bool exchange(std::span<const PointToPoint> calls, const MessagePlace& place,
                std::uint64_t staging, GroupLookahead& ahead) override {
    return flat_.exchange(calls, place, staging, ahead);
  }

  [[nodiscard]] network::StreamConnections& flat() { return flat_; }
  // See Backend::release_staging().
  [[nodiscard]] bool release_staging() const noexcept;
  // Shuts down the column's connections. Blocks at most until the deadline. Call it before
  // destruction.
  void part(Deadline deadline) { runner_.part(deadline); }

 private:
  class PartObserver;
  class FlatLookahead;

  // Returns whether this rank has already posted its part of the lane's next operation.
  [[nodiscard]] bool has_posted() const { return lane_->posted(lane_->number()); }
  // Checks and allocates what the call needs before its first part. Throws Error.
  void prepare(const CollectiveCall& call, CallParts& parts);
  void end_part(const CallPart& part, std::uint64_t staging, PartObserver& observer) noexcept;

  void run_parts(const CallParts& parts, const CollectiveCall& call, std::uint64_t staging,
                 CallLookahead& ahead);
  void run_part(const CallPart& part, std::uint64_t staging, PartsLookahead& ahead,
                PartObserver& observer, network::CallWatchdog& watch);
  void run_on_node(const CollectiveCall& part, std::uint64_t staging, PartsLookahead* ahead,
                   PartObserver& observer);
  void run_in_column(const CallPart& part, network::CallWatchdog& watch);
  void copy(const CollectiveCall& part);
  // Turns the sums that `part` has computed into averages, if the call is an average and this rank
  // holds the final sums.
  void divide(const CollectiveCall& part, network::Memory& sums);
  // Returns the address of the exchange memory for a call: device memory, unless both buffers of
  // the call are in host memory.
  [[nodiscard]] std::uint64_t exchange_memory(const CollectiveCall& call);

  MultiNodeBackend& backend_;
  network::StreamConnections& flat_;
  network::ScheduleRunner runner_;
  std::optional<network::ScheduleGroup> column_;  // empty if this rank's column does not exist
  std::unique_ptr<node::Lane> lane_;              // null before the first collective
  std::optional<device::ArenaBuffer> device_exchange_;
  std::uint64_t device_exchange_bytes_ = 0;
  network::Scratch host_exchange_;
  std::vector<int> awaited_on_node_;  // the ranks for which the running part waits
};

}  // namespace hccl::multinode
