// SPDX-License-Identifier: Apache-2.0
#include "network/schedule_runner.h"

#include "reduce/reduce.h"

#include <algorithm>
#include <array>
#include <list>
#include <memory_resource>

namespace hccl::network {
namespace {

constexpr std::size_t kCacheLine = 64;

// Returns the number of elements in one block or, if the collective has no blocks, in the buffer.
std::uint64_t block_elements(const CollectiveCall& call, int ranks) {
  return reduce::elements_in(call.data_type(), chunk_bytes(call, ranks));
}

std::size_t element_size(const CollectiveCall& call) {
  return reduce::element_size(call.data_type());
}

}  // namespace

// The connections of one channel.
class ScheduleRunner::ChannelStreams final : public Streams {
 public:
  ChannelStreams(ScheduleRunner& owner, const ScheduleGroup& group, const schedule::Shape& shape)
      : owner_(owner), group_(group), channel_(shape.channel), collective_(shape.collective) {}

  transport::Endpoint& to(int rank) override {
    const int peer = number_of(rank);
    Connection& connection = owner_.connections_[{channel_, peer}];
    if (!connection.endpoint)
      connection.endpoint =
          owner_.network_.open(peer, {owner_.ordinal_, owner_.first_connection_ + channel_});
    return *connection.endpoint;
  }
  int number_of(int rank) const override { return group_.number_at(collective_, rank); }

 private:
  ScheduleRunner& owner_;
  const ScheduleGroup& group_;
  std::uint32_t channel_;
  Collective collective_;
};

// The objects that run one channel of a call, in the order in which they must be constructed.
struct ScheduleRunner::Part {
  Part(ScheduleRunner& owner, ScheduleGroup& group, const PlannedCall& planned,
       const schedule::Shape& shape, std::pmr::memory_resource& memory)
      : schedule(group.schedule(planned.plan, shape)),
        chunking(shape, schedule, block_elements(planned.call, shape.rank_count),
                 static_cast<std::uint32_t>(kCacheLine /
                                            std::max<std::size_t>(element_size(planned.call), 1))),
        scratch(owner.scratch_[shape.channel].at_least(chunking.scratch_elements() *
                                                       element_size(planned.call))),
        streams(owner, group, shape),
        execution(schedule, chunking,
                  {&planned.send, &planned.recv, &scratch, planned.call.data_type(),
                   planned.call.reduction() == hcclAvg ? hcclSum : planned.call.reduction()},
                  planned.header, shape.rank, streams, memory) {}

  const schedule::Schedule& schedule;
  schedule::Chunking chunking;
  PlainMemory scratch;
  ChannelStreams streams;
  Execution execution;
};

// The executions of a call's channels. While the object exists, ScheduleRunner::awaited() returns
// the ranks for which these executions wait.
class ScheduleRunner::RunningChannels {
 public:
  RunningChannels(ScheduleRunner& owner, ScheduleGroup& group, const PlannedCall& call)
      : owner_(owner) {
    schedule::Shape shape = call.plan.shape;
    for (; shape.channel < shape.channels; ++shape.channel) {
      Execution& execution = parts_.emplace_back(owner, group, call, shape, memory_).execution;
      if (call.plan.algorithm->hierarchical() && !executions_.empty())
        execution.follow(*executions_.back());
      executions_.push_back(&execution);
    }
    owner_.running_ = executions_;
  }
  ~RunningChannels() { owner_.running_ = {}; }
  RunningChannels(const RunningChannels&) = delete;
  RunningChannels& operator=(const RunningChannels&) = delete;

  [[nodiscard]] std::span<Execution* const> executions() const { return executions_; }

 private:
  ScheduleRunner& owner_;
  std::array<std::byte, 4096> at_hand_;  // enough for a short call
  std::pmr::monotonic_buffer_resource memory_{at_hand_.data(), at_hand_.size()};
  std::pmr::list<Part> parts_{&memory_};
  std::pmr::vector<Execution*> executions_{&memory_};
};

bool ScheduleRunner::run(ScheduleGroup& group, const PlannedCall& call,
                         transport::WaitSet& wait_set, ProgressObserver& observer) {
  const RunningChannels channels(*this, group, call);
  run_to_completion(channels.executions(), wait_set, network_.ladder(), observer);
  return std::ranges::any_of(channels.executions(), &Execution::asks_to_confirm);
}

void ScheduleRunner::part(Deadline deadline) {
  for (auto& [key, connection] : connections_) {
    if (connection.endpoint) network_.part_from(*connection.endpoint, deadline);
  }
}

void ScheduleRunner::cut() noexcept {
  for (auto& [key, connection] : connections_) {
    if (connection.endpoint) connection.endpoint->cut();
  }
}

void ScheduleRunner::count_traffic(std::string_view algorithm) {
  Traffic& traffic = network_.counted();
  if (connections_.empty())
    traffic.set_algorithm(algorithm);  // other ranks of this node exchanged the data
  for (auto& [key, connection] : connections_)
    traffic.add(*connection.endpoint, connection.counted, algorithm);
}

std::vector<int> ScheduleRunner::awaited() const {
  std::vector<int> ranks;
  for (const Execution* const execution : running_) {
    const std::vector<int> more = execution->awaited();
    ranks.insert(ranks.end(), more.begin(), more.end());
  }
  return ranks;
}

PlainMemory Scratch::at_least(std::uint64_t size) {
  if (capacity_ < size) {
    capacity_ = 0;
    bytes_.reset();
    bytes_ = std::make_unique_for_overwrite<std::byte[]>(size);
    capacity_ = size;
  }
  return PlainMemory(bytes_.get());
}

}  // namespace hccl::network
