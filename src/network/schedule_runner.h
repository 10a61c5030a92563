// SPDX-License-Identifier: Apache-2.0
// Runs the schedules of a stream's collectives over the stream's connections.
#pragma once

#include "network/network_backend.h"
#include "network/run_to_completion.h"
#include "network/schedule_group.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace hccl::network {

// A buffer that is reused by later calls, and grows as needed.
class Scratch {
 public:
  [[nodiscard]] PlainMemory at_least(std::uint64_t size);

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::uint64_t capacity_ = 0;
};

// A call, its plan and its buffers. `header` precedes the data on each connection.
struct PlannedCall {
  const planner::Plan& plan;
  const CollectiveCall& call;
  const CallHeader& header;
  Memory& send;
  Memory& recv;
};

// Thread safety: one thread at a time.
class ScheduleRunner {
 public:
  // `first_connection`: the connection number of channel 0. The other channels use the following
  // numbers.
  ScheduleRunner(NetworkBackend& network, std::uint32_t first_connection)
      : network_(network), first_connection_(first_connection) {}

  // Sets the ordinal of the stream. Call before the first run().
  void set_ordinal(std::uint32_t ordinal) { ordinal_ = ordinal; }

  // Runs all channels of a call among the ranks of a group. Blocks until this rank's part is
  // complete. Returns whether a channel asks all ranks to confirm the call
  // (Execution::asks_to_confirm()). Throws Error, such as CallMismatch or transport::PeerLost, and
  // what the observer throws.
  bool run(ScheduleGroup& group, const PlannedCall& call, transport::WaitSet& wait_set,
           ProgressObserver& observer);

  // Returns the ranks for which the running call waits, numbered as in the communicator.
  [[nodiscard]] std::vector<int> awaited() const;
  // Adds the traffic since the last count_traffic() to the communicator's traffic.
  void count_traffic(std::string_view algorithm);
  // Calls NetworkBackend::part_from() for all endpoints. Call before destruction.
  void part(Deadline deadline);
  // Cuts all connections, so that peers no longer store into this rank's buffers.
  void cut() noexcept;

 private:
  class ChannelStreams;
  class RunningChannels;
  struct Part;

  NetworkBackend& network_;
  const std::uint32_t first_connection_;
  std::uint32_t ordinal_ = 0;
  struct Connection {
    std::unique_ptr<transport::Endpoint> endpoint;
    transport::Counters counted;
  };
  std::map<std::pair<std::uint32_t, int>, Connection> connections_;  // by channel and peer
  std::map<std::uint32_t, Scratch> scratch_;                         // by channel
  std::span<Execution* const> running_;                              // the executions in progress
};

}  // namespace hccl::network
