// SPDX-License-Identifier: Apache-2.0
// A collective across endpoints: plan, schedules, executions, and what a rank looks after
// meanwhile.
#include "comm/fabric_lane.h"

#include "base/error.h"
#include "base/text.h"
#include "comm/fabric_watch.h"
#include "reduce/reduce.h"

#include <algorithm>

namespace hccl::comm {
namespace {

using schedule::Collective;

constexpr std::size_t kCacheLine = 64;

Collective collective_of(node::Collective collective) {
  switch (collective) {
    case node::Collective::all_reduce:
      return Collective::all_reduce;
    case node::Collective::broadcast:
      return Collective::broadcast;
    case node::Collective::all_gather:
      return Collective::all_gather;
    case node::Collective::reduce_scatter:
      return Collective::reduce_scatter;
    case node::Collective::reduce:
      return Collective::reduce;
    case node::Collective::all_to_all:
      return Collective::all_to_all;
    case node::Collective::barrier:
      break;
  }
  return Collective::barrier;
}

// Parts of the buffers belong to ranks: those are not renumbered.
bool has_parts(node::Collective collective) {
  return collective == node::Collective::all_gather || collective == node::Collective::all_to_all ||
         collective == node::Collective::reduce_scatter;
}

// Of the message, or of one block.
std::uint64_t block_elements(const node::CollectiveCall& call, int ranks) {
  return reduce::elements_in(call.data_type(), node::chunk_bytes(call, ranks));
}

}  // namespace

// The endpoints of one channel, by the numbers of the schedule.
class FabricLane::ChannelStreams final : public executor::Streams {
 public:
  ChannelStreams(FabricLane& lane, std::uint32_t channel, bool by_node)
      : lane_(lane), channel_(channel), by_node_(by_node) {}

  transport::Endpoint& to(int rank) override {
    const int peer = number_of(rank);
    auto& endpoint = lane_.endpoints_[{channel_, peer}];
    if (!endpoint) endpoint = lane_.fabric_.open(peer, {lane_.ordinal_, channel_});
    return *endpoint;
  }
  int number_of(int rank) const override {
    return by_node_ ? lane_.fabric_.topology().node_order()[static_cast<std::size_t>(rank)] : rank;
  }

 private:
  FabricLane& lane_;
  std::uint32_t channel_;
  bool by_node_;
};

// All of one channel, in the order that they need each other.
struct FabricLane::Part {
  Part(FabricLane& lane, const planner::Plan& plan, const schedule::Shape& shape,
       const node::CollectiveCall& call, const executor::CallHeader& header, executor::Memory& send,
       executor::Memory& recv)
      : schedule(lane.schedules_.get(*plan.algorithm, shape)),
        chunking(
            shape, schedule, block_elements(call, shape.rank_count),
            static_cast<std::uint32_t>(
                kCacheLine / std::max<std::size_t>(reduce::element_size(call.data_type()), 1))),
        scratch(lane.scratch(shape.channel,
                             chunking.scratch_elements() * reduce::element_size(call.data_type()))),
        streams(lane, shape.channel, !has_parts(call.collective)),
        execution(schedule, chunking,
                  {&send, &recv, &scratch, call.data_type(),
                   call.reduction() == hcclAvg ? hcclSum : call.reduction()},
                  header, shape.rank, streams) {}

  const schedule::Schedule& schedule;
  schedule::Chunking chunking;
  executor::PlainMemory scratch;
  ChannelStreams streams;
  executor::Execution execution;
};

void FabricLane::run(const node::CollectiveCall& call, executor::Memory& send,
                     executor::Memory& recv) {
  const FabricOptions& options = fabric_.options();
  if (fabric_.fault().raised()) fabric_.fault().throw_error();
  const planner::Plan plan =
      planner::make_plan(collective_of(call.collective), node::chunk_bytes(call, options.size),
                         options.size, options.algorithm);
  naming_the_lost(
      fabric_, wait_set_, [&] { return node::describe(call); },
      [&] { run_channels(call, plan, send, recv); });
  if (call.reduction() == hcclAvg && node::receives(call, options.rank)) average(call, recv);
  ++calls_;
}

void FabricLane::run_channels(const node::CollectiveCall& call, const planner::Plan& plan,
                              executor::Memory& send, executor::Memory& recv) {
  const FabricOptions& options = fabric_.options();
  const topology::Topology& topology = fabric_.topology();
  const bool renumbered = !has_parts(call.collective);
  const auto number = [&](int rank) { return renumbered ? topology.place_of(rank) : rank; };
  schedule::Shape shape;
  shape.collective = collective_of(call.collective);
  shape.rank = number(options.rank);
  shape.rank_count = options.size;
  shape.root = call.root >= 0 ? number(call.root) : 0;
  shape.channels = plan.channels;
  shape.pipeline = plan.pipeline;
  executor::CallHeader header;
  header.collective = static_cast<std::uint8_t>(shape.collective);
  header.type = call.type;
  header.operation = call.operation;
  header.algorithm = static_cast<std::uint8_t>(plan.algorithm - algorithms::catalogue().data());
  header.number = calls_;
  header.count = call.count;
  header.root = call.root;
  header.channels = static_cast<std::uint16_t>(plan.channels);
  header.pipeline = static_cast<std::uint16_t>(plan.pipeline);
  // In place as the API has it: the one lies where the other has this rank's part.
  const std::uint64_t own =
      node::chunk_bytes(call, options.size) * static_cast<std::uint64_t>(options.rank);
  const bool in_output = call.collective == node::Collective::all_gather;
  const bool in_input = call.collective == node::Collective::reduce_scatter;
  shape.in_place = call.send + (in_input ? own : 0) == call.recv + (in_output ? own : 0);
  std::vector<std::unique_ptr<Part>> parts;
  std::vector<executor::Execution*> executions;
  for (shape.channel = 0; shape.channel < shape.channels; ++shape.channel) {
    parts.push_back(std::make_unique<Part>(*this, plan, shape, call, header, send, recv));
    executions.push_back(&parts.back()->execution);
  }
  const auto doing = [&] {
    return text("op ", calls_, " of stream ", ordinal_, ", ", node::describe(call));
  };
  const auto awaited = [&] {
    std::vector<int> ranks;
    for (const executor::Execution* const execution : executions) {
      const std::vector<int> more = execution->awaited();
      ranks.insert(ranks.end(), more.begin(), more.end());
    }
    return ranks;
  };
  FabricWatch watch(fabric_, doing, awaited);
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
