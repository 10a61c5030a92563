// SPDX-License-Identifier: Apache-2.0
// The connections of one stream, used by no other, and the collectives that run over them. No
// output is written before all ranks are known to make the same call: see run().
#pragma once

#include "call/collective_call.h"
#include "device/command_queue.h"
#include "network/network_backend.h"
#include "network/run_to_completion.h"
#include "planner/planner.h"
#include "planner/schedule_cache.h"

#include <map>
#include <memory>
#include <memory_resource>
#include <vector>

namespace hccl::network {

class CallWatchdog;

// Calls run one at a time, on the stream's turn.
class StreamConnections {
 public:
  StreamConnections(NetworkBackend& network, std::uint32_t ordinal)
      : network_(network), ordinal_(ordinal), schedules_(network.planner()) {}
  StreamConnections(const StreamConnections&) = delete;
  StreamConnections& operator=(const StreamConnections&) = delete;

  // Runs a call. `send` and `recv` are its buffers; `more_behind`: another call of this lane is
  // queued behind it on `stream`. Blocks until this rank's part is complete. Throws Error: the
  // communicator's fault, a lost peer, a mismatched call, or the passed deadline.
  //
  // A short call stages its output and moves it to `recv` once data of all ranks have arrived.
  // Before a longer one, a reduce, and a call without elements, the ranks first agree on the call.
  // The data of a short broadcast come from the root alone; its ranks agree afterwards, unless the
  // root has another call queued behind it.
  void run(const CollectiveCall& call, Memory& send, Memory& recv, const device::Lookahead& stream,
           bool more_behind);
  // Call before it is destroyed: see NetworkBackend::part_from().
  void part(Deadline deadline);
  // Returns how many calls this rank has completed on the lane. Call on the stream's turn.
  [[nodiscard]] std::uint64_t calls() const { return calls_; }
  // Ends a wait. Thread safety: any thread.
  void wake() noexcept { wait_set_.ring(); }

 private:
  class ChannelStreams;
  class CutUnlessDone;
  struct Part;

  // A buffer that is kept from call to call and grows as needed.
  struct Scratch {
    [[nodiscard]] PlainMemory at_least(std::uint64_t size);

    std::unique_ptr<std::byte[]> bytes;
    std::uint64_t capacity = 0;
  };
  // The executions in progress, for CallWatchdog.
  using Executions = std::pmr::vector<Execution*>;

  void run_guarded(const CollectiveCall& call, const planner::Plan& plan, const CallHeader& header,
                   Memory& send, Memory& recv, const device::Lookahead& stream, bool agrees_first);
  // Moves the data. Returns whether some rank asked that the ranks agree on the call now.
  [[nodiscard]] bool run_channels(const CollectiveCall& call, const planner::Plan& plan,
                                  const CallHeader& header, Memory& send, Memory& recv,
                                  CallWatchdog& watch);
  // Blocks until every rank has come to the call. Throws CallMismatch if ranks make different
  // calls.
  void agree(const CallHeader& header, CallWatchdog& watch);
  void run_to_completion(Executions& executions, CallWatchdog& watch);
  [[nodiscard]] std::vector<int> awaited() const;
  void count_traffic(const planner::Plan& plan);

  NetworkBackend& network_;
  const std::uint32_t ordinal_;
  std::uint64_t calls_ = 0;
  transport::WaitSet wait_set_;
  planner::ScheduleCache schedules_;
  struct Stream {
    std::unique_ptr<transport::Endpoint> endpoint;
    transport::Counters counted;
  };
  std::map<std::pair<std::uint32_t, int>, Stream> endpoints_;  // by channel and peer
  std::map<std::uint32_t, Scratch> scratch_;                   // by channel
  Scratch staged_output_;
  Scratch prescaled_input_;
  const Executions* running_ = nullptr;
};

}  // namespace hccl::network
