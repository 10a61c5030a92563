// SPDX-License-Identifier: Apache-2.0
// The network back end's part of one stream: its connections, and the collectives that run over
// them. No output is written before all ranks are known to make the same call: see run().
#pragma once

#include "call/backend.h"
#include "network/network_backend.h"
#include "network/run_to_completion.h"
#include "planner/planner.h"
#include "planner/schedule_cache.h"

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace hccl::network {

class CallWatchdog;

// Calls run one at a time, on the stream's turn.
class StreamConnections final : public BackendStream {
 public:
  // `id`: the stream's id.
  StreamConnections(NetworkBackend& network, std::uint64_t id)
      : network_(network), id_(id), schedules_(network.planner()) {}

  void begin_collectives(std::uint32_t ordinal) override { ordinal_ = ordinal; }
  void number(PointToPoint& call) override { network_.messages().number(call, id_); }
  // Throw Error: the communicator's fault, a lost peer, a mismatched call, or a time-out.
  //
  // A short call, whose buffers have at most 128 KiB times the number of ranks and at most 1 MiB,
  // stages its output and copies it to `recv` when the data of all ranks has arrived. For a longer
  // call, a reduce, or a call without elements, the ranks agree on the call before any data moves.
  // In a short broadcast, only the root sends data; the ranks agree afterwards, unless the root has
  // another call queued after this one.
  bool run(const CollectiveCall& call, std::uint64_t staging, CallLookahead& ahead) override;
  bool exchange(std::span<const PointToPoint> calls, const MessagePlace& place,
                std::uint64_t staging, GroupLookahead& ahead) override;

  // Calls NetworkBackend::part_from() for all endpoints. Call it before destruction.
  void part(Deadline deadline);
  [[nodiscard]] std::uint64_t id() const { return id_; }
  // Returns the number of collectives that this rank has completed. Call on the stream's turn.
  [[nodiscard]] std::uint64_t calls() const { return calls_; }
  // Returns the wait set on which the stream's calls sleep, created at the first use. Call on the
  // stream's turn. Throws Error(hcclSystemError) if the process has no descriptor left.
  [[nodiscard]] transport::WaitSet& wait_set();
  // Ends a wait. Thread safety: any thread.
  void wake();

 private:
  class ChannelStreams;
  class RunningChannels;
  struct Part;

  // A buffer that is kept from call to call and grows as needed.
  struct Scratch {
    [[nodiscard]] PlainMemory at_least(std::uint64_t size);

    std::unique_ptr<std::byte[]> bytes;
    std::uint64_t capacity = 0;
  };

  void prepare_buffers(const CollectiveCall& call);
  // Moves the data while a watchdog checks for faults. If `agrees_first`, all ranks agree on the
  // call before any data moves.
  void run_watched(const CollectiveCall& call, const planner::Plan& plan, const CallHeader& header,
                   Memory& send, Memory& recv, const CallLookahead& ahead, bool agrees_first);
  // Blocks until every rank has reached the call. Throws CallMismatch if ranks make different
  // calls.
  void agree(const CallHeader& header, CallWatchdog& watch);
  [[nodiscard]] std::vector<int> awaited() const;
  void cut() noexcept;
  void count_traffic(const planner::Plan& plan);

  NetworkBackend& network_;
  const std::uint64_t id_;
  std::uint32_t ordinal_ = 0;  // set by begin_collectives()
  std::uint64_t calls_ = 0;
  std::mutex wait_mutex_;
  std::unique_ptr<transport::WaitSet> wait_set_;
  planner::ScheduleCache schedules_;
  struct Connection {
    std::unique_ptr<transport::Endpoint> endpoint;
    transport::Counters counted;
  };
  std::map<std::pair<std::uint32_t, int>, Connection> connections_;  // by channel and peer
  std::map<std::uint32_t, Scratch> scratch_;                         // by channel
  Scratch staged_output_;
  Scratch prescaled_input_;
  std::span<Execution* const> running_;  // the executions in progress
};

}  // namespace hccl::network
