// SPDX-License-Identifier: Apache-2.0
// One stream's part of a fabric: the endpoints that its collectives use, which no other stream's
// do, and the collectives themselves. No output is written before all ranks are known to make the
// same call: see run().
#pragma once

#include "comm/fabric.h"
#include "device/command_queue.h"
#include "executor/drive.h"
#include "node/collective_call.h"
#include "planner/planner.h"
#include "planner/schedule_cache.h"

#include <map>
#include <memory>
#include <memory_resource>
#include <vector>

namespace hccl::comm {

class FabricWatch;

// Its calls run one at a time, on the stream's turn.
class FabricLane {
 public:
  FabricLane(Fabric& fabric, std::uint32_t ordinal)
      : fabric_(fabric), ordinal_(ordinal), schedules_(fabric.planner()) {}
  FabricLane(const FabricLane&) = delete;
  FabricLane& operator=(const FabricLane&) = delete;

  // Runs a call to its end. `send` and `recv` are the call's buffers; `more_behind` says that
  // another call of this lane is queued behind it on `stream`. Blocks until this rank's part is
  // complete. Throws Error: the communicator's fault, a lost peer, a call that does not match, the
  // deadline.
  //
  // A short call writes its output aside, and moves it to `recv` once data of all ranks have come.
  // For a longer one, a reduce, and a call without elements, the ranks agree on the call first. The
  // data of a short broadcast come from the root alone; its ranks agree after it, unless the root
  // has more queued behind it.
  void run(const node::CollectiveCall& call, executor::Memory& send, executor::Memory& recv,
           const device::Upcoming& stream, bool more_behind);
  // Before it ends: see Fabric::part_from().
  void part(Deadline deadline);
  // The calls that this rank has completed on the lane. On the stream's turn.
  [[nodiscard]] std::uint64_t calls() const { return calls_; }
  // Ends a wait. Any thread.
  void wake() noexcept { wait_set_.ring(); }

 private:
  class ChannelStreams;
  class CutUnlessDone;
  struct Part;

  // Memory that is kept from call to call and grows as needed.
  struct Scratch {
    [[nodiscard]] executor::PlainMemory at_least(std::uint64_t size);

    std::unique_ptr<std::byte[]> bytes;
    std::uint64_t capacity = 0;
  };
  // The executions that run now, for FabricWatch.
  using Executions = std::pmr::vector<executor::Execution*>;

  void run_guarded(const node::CollectiveCall& call, const planner::Plan& plan,
                   const executor::CallHeader& header, executor::Memory& send,
                   executor::Memory& recv, const device::Upcoming& stream, bool agrees_first);
  // Moves the data. Returns whether some rank asked for the ranks to agree on the call now.
  [[nodiscard]] bool run_channels(const node::CollectiveCall& call, const planner::Plan& plan,
                                  const executor::CallHeader& header, executor::Memory& send,
                                  executor::Memory& recv, FabricWatch& watch);
  // Returns once every rank has come to the call. Throws CallMismatch where ranks make different
  // calls.
  void agree(const executor::CallHeader& header, FabricWatch& watch);
  void drive(Executions& executions, FabricWatch& watch);
  [[nodiscard]] std::vector<int> awaited() const;
  void count_traffic(const planner::Plan& plan);

  Fabric& fabric_;
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

}  // namespace hccl::comm
