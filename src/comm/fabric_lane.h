// SPDX-License-Identifier: Apache-2.0
// One stream's part of a fabric: the endpoints that its collectives use, which no other stream's
// do, and the collectives themselves.
#pragma once

#include "comm/fabric.h"
#include "executor/drive.h"
#include "node/collective_call.h"
#include "planner/planner.h"
#include "planner/schedule_cache.h"

#include <map>
#include <memory>
#include <vector>

namespace hccl::comm {

// Its calls run one at a time, on the stream's turn.
class FabricLane {
 public:
  FabricLane(Fabric& fabric, std::uint32_t ordinal)
      : fabric_(fabric), ordinal_(ordinal), schedules_(fabric.planner()) {}
  FabricLane(const FabricLane&) = delete;
  FabricLane& operator=(const FabricLane&) = delete;

  // To its end. `send` and `recv` are the call's buffers. Throws Error: the communicator's fault, a
  // lost peer, a call that does not match, the deadline.
  void run(const node::CollectiveCall& call, executor::Memory& send, executor::Memory& recv);
  // Before it ends: see Fabric::part_from().
  void part(Deadline deadline);
  // Ends a wait. Any thread.
  void wake() noexcept { wait_set_.ring(); }

 private:
  class ChannelStreams;
  class CutUnlessDone;
  struct Part;

  void run_channels(const node::CollectiveCall& call, const planner::Plan& plan,
                    executor::Memory& send, executor::Memory& recv);
  void average(const node::CollectiveCall& call, executor::Memory& recv) const;
  void count_traffic(const planner::Plan& plan);
  [[nodiscard]] executor::PlainMemory scratch(std::uint32_t channel, std::uint64_t bytes);

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
  struct Scratch {
    std::unique_ptr<std::byte[]> bytes;
    std::uint64_t size = 0;
  };
  std::map<std::uint32_t, Scratch> scratch_;  // by channel
};

}  // namespace hccl::comm
