// SPDX-License-Identifier: Apache-2.0
// A collective across endpoints: plan, schedules, executions, and what a rank looks after
// meanwhile.
#include "comm/fabric_lane.h"

#include "base/error.h"
#include "base/text.h"
#include "comm/fabric_watch.h"
#include "reduce/reduce.h"

#include <algorithm>
#include <array>
#include <list>
#include <memory_resource>

namespace hccl::comm {
namespace {

constexpr std::size_t kCacheLine = 64;

// As the API has it: the one lies where the other has this rank's part.
bool in_place(const node::CollectiveCall& call, int rank, int ranks) {
  const std::uint64_t own = node::chunk_bytes(call, ranks) * static_cast<std::uint64_t>(rank);
  const bool in_output = call.collective == Collective::all_gather;
  const bool in_input = call.collective == Collective::reduce_scatter;
  return call.send + (in_input ? own : 0) == call.recv + (in_output ? own : 0);
}

executor::CallHeader header_of(const node::CollectiveCall& call, const planner::Plan& plan,
                               std::uint64_t number) {
  constexpr std::uint8_t kByNodes = 0x80;
  const auto algorithm = plan.algorithm - algorithms::catalogue().data();
  executor::CallHeader header;
  header.collective = static_cast<std::uint8_t>(call.collective);
  header.type = call.type;
  header.operation = call.operation;
  header.algorithm = static_cast<std::uint8_t>(algorithm | (plan.by_nodes ? kByNodes : 0));
  header.number = number;
  header.count = call.count;
  header.root = call.root;
  header.channels = static_cast<std::uint16_t>(plan.shape.channels);
  header.pipeline = static_cast<std::uint16_t>(plan.shape.pipeline);
  return header;
}

// Of the message, or of one block.
std::uint64_t block_elements(const node::CollectiveCall& call, int ranks) {
  return reduce::elements_in(call.data_type(), node::chunk_bytes(call, ranks));
}

}  // namespace

// The endpoints of one channel, by the numbers of the schedule.
class FabricLane::ChannelStreams final : public executor::Streams {
 public:
  ChannelStreams(FabricLane& lane, const schedule::Shape& shape)
      : lane_(lane), channel_(shape.channel), collective_(shape.collective) {}

  transport::Endpoint& to(int rank) override {
    const int peer = number_of(rank);
    Stream& stream = lane_.endpoints_[{channel_, peer}];
    if (!stream.endpoint) stream.endpoint = lane_.fabric_.open(peer, {lane_.ordinal_, channel_});
    return *stream.endpoint;
  }
  int number_of(int rank) const override {
    return lane_.fabric_.planner().rank_at(collective_, rank);
  }

 private:
  FabricLane& lane_;
  std::uint32_t channel_;
  Collective collective_;
};

// All of one channel, in the order that they need each other.
struct FabricLane::Part {
  Part(FabricLane& lane, const planner::Plan& plan, const schedule::Shape& shape,
       const node::CollectiveCall& call, const executor::CallHeader& header, executor::Memory& send,
       executor::Memory& recv, std::pmr::memory_resource& memory)
      : schedule(lane.schedules_.get(plan, shape)),
        chunking(
            shape, schedule, block_elements(call, shape.rank_count),
            static_cast<std::uint32_t>(
                kCacheLine / std::max<std::size_t>(reduce::element_size(call.data_type()), 1))),
        scratch(lane.scratch(shape.channel,
                             chunking.scratch_elements() * reduce::element_size(call.data_type()))),
        streams(lane, shape),
        execution(schedule, chunking,
                  {&send, &recv, &scratch, call.data_type(),
                   call.reduction() == hcclAvg ? hcclSum : call.reduction()},
                  header, shape.rank, streams, memory) {}

  const schedule::Schedule& schedule;
  schedule::Chunking chunking;
  executor::PlainMemory scratch;
  ChannelStreams streams;
  executor::Execution execution;
};

// A call that fails leaves its buffers to the program: no peer may store there any more.
class FabricLane::CutUnlessDone {
 public:
  explicit CutUnlessDone(FabricLane& lane) : lane_(lane) {}
  ~CutUnlessDone() {
    if (done_) return;
    for (auto& [key, stream] : lane_.endpoints_) {
      if (stream.endpoint) stream.endpoint->cut();
    }
  }
  CutUnlessDone(const CutUnlessDone&) = delete;
  CutUnlessDone& operator=(const CutUnlessDone&) = delete;

  void done() { done_ = true; }

 private:
  FabricLane& lane_;
  bool done_ = false;
};

void FabricLane::run(const node::CollectiveCall& call, executor::Memory& send,
                     executor::Memory& recv) {
  const FabricOptions& options = fabric_.options();
  if (fabric_.fault().raised()) fabric_.fault().throw_error();
  const planner::Plan plan =
      fabric_.planner().plan({call.collective, node::chunk_bytes(call, options.size), options.rank,
                              call.root, in_place(call, options.rank, options.size)});
  CutUnlessDone guard(*this);
  naming_the_lost(
      fabric_, [this]() -> transport::WaitSet& { return wait_set_; },
      [&] { return node::describe(call); }, [&] { run_channels(call, plan, send, recv); });
  guard.done();
  if (call.reduction() == hcclAvg && node::receives(call, options.rank)) average(call, recv);
  count_traffic(plan);
  fabric_.inquiries().note_done({ordinal_, calls_, plan.name()}, call);
  ++calls_;
}

void FabricLane::part(Deadline deadline) {
  for (auto& [key, stream] : endpoints_) {
    if (stream.endpoint) fabric_.part_from(*stream.endpoint, deadline);
  }
}

void FabricLane::count_traffic(const planner::Plan& plan) {
  Traffic& traffic = fabric_.traffic();
  for (auto& [key, stream] : endpoints_) traffic.add(*stream.endpoint, stream.counted, plan.name());
}

void FabricLane::run_channels(const node::CollectiveCall& call, const planner::Plan& plan,
                              executor::Memory& send, executor::Memory& recv) {
  const executor::CallHeader header = header_of(call, plan, calls_);
  // Short calls need no memory of the heap.
  std::array<std::byte, 4096> at_hand;
  std::pmr::monotonic_buffer_resource memory(at_hand.data(), at_hand.size());
  std::pmr::list<Part> parts(&memory);
  std::pmr::vector<executor::Execution*> executions(&memory);
  schedule::Shape shape = plan.shape;
  for (; shape.channel < shape.channels; ++shape.channel) {
    executor::Execution& execution =
        parts.emplace_back(*this, plan, shape, call, header, send, recv, memory).execution;
    if (plan.by_nodes && !executions.empty()) execution.follow(*executions.back());
    executions.push_back(&execution);
  }
  const auto name = [&] { return node::describe(call); };
  const auto awaited = [&] {
    std::vector<int> ranks;
    for (const executor::Execution* const execution : executions) {
      const std::vector<int> more = execution->awaited();
      ranks.insert(ranks.end(), more.begin(), more.end());
    }
    return ranks;
  };
  FabricWatch watch(fabric_, Place{ordinal_, calls_, plan.name()}, name, awaited);
  executor::drive(executions, wait_set_, fabric_.ladder(), watch);
}

void FabricLane::average(const node::CollectiveCall& call, executor::Memory& recv) const {
  constexpr std::size_t kPiece = 64 << 10;
  const int ranks = fabric_.options().size;
  const std::uint64_t bytes = node::recv_bytes(call, ranks);
  for (std::uint64_t at = 0; at < bytes;) {
    const std::span<std::byte> piece =
        recv.destination(at, static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, bytes - at)));
    reduce::average_tile(call.data_type(), piece.data(),
                         reduce::elements_in(call.data_type(), piece.size()),
                         static_cast<std::uint32_t>(ranks));
    at += piece.size();
  }
}

executor::PlainMemory FabricLane::scratch(std::uint32_t channel, std::uint64_t bytes) {
  Scratch& kept = scratch_[channel];
  if (kept.size < bytes) {
    kept.bytes.reset();
    kept.bytes = std::make_unique_for_overwrite<std::byte[]>(bytes);
    kept.size = bytes;
  }
  return executor::PlainMemory(kept.bytes.get());
}

}  // namespace hccl::comm
