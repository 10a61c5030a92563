// SPDX-License-Identifier: Apache-2.0
// Runs a collective over connections: chooses the plan, builds the schedules of its channels, and
// runs them to completion.
#include "network/stream_connections.h"

#include "base/error.h"
#include "base/scope_exit.h"
#include "base/text.h"
#include "network/averaging.h"
#include "network/call_memory.h"
#include "network/call_watchdog.h"
#include "reduce/reduce.h"

#include <algorithm>
#include <array>
#include <list>
#include <memory>
#include <memory_resource>

namespace hccl::network {
namespace {

constexpr std::size_t kCacheLine = 64;

// Returns whether a call stages its output until the data of all ranks has arrived. Short calls do,
// because a copy of the output then takes less time than a round of messages among all ranks. A
// reduce, which moves data to one rank only, and a call without elements do not. The result is the
// same on all ranks.
bool stages_output(const CollectiveCall& call, int ranks) {
  if (call.traits().receivers == RankSet::root || call.count == 0) return false;
  constexpr std::uint64_t kStagedBytesPerRank = 128 << 10;
  constexpr std::uint64_t kMostStagedBytes = 1 << 20;
  const std::uint64_t bytes = std::max(send_bytes(call, ranks), recv_bytes(call, ranks));
  return bytes <=
         std::min(kStagedBytesPerRank * static_cast<std::uint64_t>(ranks), kMostStagedBytes);
}

void copy(Memory& from, Memory& to, std::uint64_t bytes) {
  constexpr std::size_t kMost = std::size_t{1} << 20;
  for (std::uint64_t at = 0; at < bytes;) {
    const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(bytes - at, kMost));
    const std::span<std::byte> into = to.destination(at, most);
    std::ranges::copy(from.source(at, into.size()), into.begin());
    at += into.size();
  }
}

// Returns the number of elements of one block or, if the collective has no blocks, of the message.
std::uint64_t block_elements(const CollectiveCall& call, int ranks) {
  return reduce::elements_in(call.data_type(), chunk_bytes(call, ranks));
}

}  // namespace

// The connections of one channel.
class StreamConnections::ChannelStreams final : public Streams {
 public:
  ChannelStreams(StreamConnections& owner, const schedule::Shape& shape)
      : owner_(owner), channel_(shape.channel), collective_(shape.collective) {}

  transport::Endpoint& to(int rank) override {
    const int peer = number_of(rank);
    Connection& connection = owner_.connections_[{channel_, peer}];
    if (!connection.endpoint)
      connection.endpoint = owner_.network_.open(peer, {owner_.ordinal_, channel_});
    return *connection.endpoint;
  }
  int number_of(int rank) const override {
    return owner_.network_.planner().rank_at(collective_, rank);
  }

 private:
  StreamConnections& owner_;
  std::uint32_t channel_;
  Collective collective_;
};

// The objects that run one channel of a call. Each depends on those before it.
struct StreamConnections::Part {
  Part(StreamConnections& owner, const planner::Plan& plan, const schedule::Shape& shape,
       const CollectiveCall& call, const CallHeader& header, Memory& send, Memory& recv,
       std::pmr::memory_resource& memory)
      : schedule(owner.schedules_.get(plan, shape)),
        chunking(
            shape, schedule, block_elements(call, shape.rank_count),
            static_cast<std::uint32_t>(
                kCacheLine / std::max<std::size_t>(reduce::element_size(call.data_type()), 1))),
        scratch(owner.scratch_[shape.channel].at_least(chunking.scratch_elements() *
                                                       reduce::element_size(call.data_type()))),
        streams(owner, shape),
        execution(schedule, chunking,
                  {&send, &recv, &scratch, call.data_type(),
                   call.reduction() == hcclAvg ? hcclSum : call.reduction()},
                  header, shape.rank, streams, memory) {}

  const schedule::Schedule& schedule;
  schedule::Chunking chunking;
  PlainMemory scratch;
  ChannelStreams streams;
  Execution execution;
};

// The executions of a call's channels. While the object exists, awaited() includes them.
class StreamConnections::RunningChannels {
 public:
  RunningChannels(StreamConnections& owner, const planner::Plan& plan, const CollectiveCall& call,
                  const CallHeader& header, Memory& send, Memory& recv)
      : owner_(owner) {
    schedule::Shape shape = plan.shape;
    for (; shape.channel < shape.channels; ++shape.channel) {
      Execution& execution =
          parts_.emplace_back(owner, plan, shape, call, header, send, recv, memory_).execution;
      if (plan.algorithm->hierarchical() && !executions_.empty())
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
  StreamConnections& owner_;
  std::array<std::byte, 4096> at_hand_;  // enough for a short call
  std::pmr::monotonic_buffer_resource memory_{at_hand_.data(), at_hand_.size()};
  std::pmr::list<Part> parts_{&memory_};
  std::pmr::vector<Execution*> executions_{&memory_};
};

// Checks that this rank may access the buffers of a call, and registers them.
void StreamConnections::prepare_buffers(const CollectiveCall& call) {
  const int rank = network_.rank();
  const int ranks = network_.size();
  const bool stores = receives(call, rank) && !keeps_own_data(call, rank);
  const Buffer sent{call.send, sends(call, rank) ? send_bytes(call, ranks) : 0};
  const Buffer received{call.recv, stores ? recv_bytes(call, ranks) : 0};
  require_writable(received);
  if (!sent.is_within(received)) require_readable(sent);
  network_.register_memory(sent.address, sent.bytes);
  network_.register_memory(received.address, received.bytes);
}

bool StreamConnections::run(const CollectiveCall& call, std::uint64_t /*staging*/,
                            CallLookahead& ahead) {
  if (ahead.wait_budget() != WaitBudget::unlimited) return false;
  const int rank = network_.rank();
  const int ranks = network_.size();
  prepare_buffers(call);
  const CallMemory send(network_.arena(), call.send);
  const CallMemory recv(network_.arena(), call.recv);
  static_cast<void>(wait_set());  // created before the check, so that a later fault rings it
  network_.throw_if_failed();
  const bool staged = stages_output(call, ranks);
  const planner::Plan plan =
      network_.planner().plan({call.collective, chunk_bytes(call, ranks), rank, call.root,
                               !staged && !prescales(call) && is_in_place(call, rank, ranks)});
  CallHeader header = CallHeader::of(call, plan, calls_);
  const bool is_root = call.traits().senders == RankSet::root && call.root == rank;
  header.confirm = staged && is_root && !ahead.has_next() ? 1 : 0;
  const std::uint64_t output = receives(call, rank) ? recv_bytes(call, ranks) : 0;
  PlainMemory aside = staged_output_.at_least(staged ? output : 0);
  Memory& target = staged ? static_cast<Memory&>(aside) : recv.get();
  const std::uint64_t prescaled = prescales(call) ? send_bytes(call, ranks) : 0;
  PlainMemory scaled = prescaled_input_.at_least(prescaled);
  prescale(call, send.get(), scaled, prescaled, ranks);
  Memory& input = prescaled != 0 ? static_cast<Memory&>(scaled) : send.get();
  // If the call fails, cut the connections, so that peers no longer store into the buffers.
  ScopeExit unless_done([this] { cut(); });
  run_watched(call, plan, header, input, target, ahead,
              !staged && call.collective != Collective::barrier);
  if (call.reduction() == hcclAvg) divide(call, target, output, ranks);
  if (staged && !keeps_own_data(call, rank)) copy(aside, recv.get(), output);
  unless_done.dismiss();
  count_traffic(plan);
  network_.stall_reports().note_done({ordinal_, calls_, plan.algorithm->name}, call);
  ++calls_;
  return true;
}

void StreamConnections::run_watched(const CollectiveCall& call, const planner::Plan& plan,
                                    const CallHeader& header, Memory& send, Memory& recv,
                                    const CallLookahead& ahead, bool agrees_first) {
  const auto name = [&] { return describe(call); };
  try {
    CallWatchdog watch(network_, {{ordinal_, calls_, plan.algorithm->name},
                                  true,
                                  name,
                                  [this] { return awaited(); },
                                  &ahead,
                                  id_});
    try {
      if (agrees_first) agree(header, watch);
      bool is_asked_to_agree = false;
      if (call.count != 0 || call.collective == Collective::barrier) {
        const RunningChannels channels(*this, plan, call, header, send, recv);
        run_to_completion(channels.executions(), wait_set(), network_.ladder(), watch);
        is_asked_to_agree = std::ranges::any_of(channels.executions(), &Execution::asks_to_confirm);
      }
      if (is_asked_to_agree) agree(header, watch);
    } catch (const CallMismatch& mismatch) {
      watch.throw_mismatch(mismatch, wait_set());
    }
  } catch (const transport::PeerLost& lost) {
    throw_lost(network_, wait_set(), name(), lost);
  }
}

// Runs a barrier whose messages carry the identity of the call.
void StreamConnections::agree(const CallHeader& header, CallWatchdog& watch) {
  CollectiveCall nothing;
  nothing.collective = Collective::barrier;
  const planner::Plan plan =
      network_.planner().plan({nothing.collective, 0, network_.rank(), 0, false});
  CallHeader agreement = header;
  agreement.phase = CallHeader::Phase::agreement;
  agreement.confirm = 0;
  PlainMemory none(nullptr);
  const RunningChannels channels(*this, plan, nothing, agreement, none, none);
  run_to_completion(channels.executions(), wait_set(), network_.ladder(), watch);
}

bool StreamConnections::exchange(std::span<const PointToPoint> calls, const MessagePlace& place,
                                 std::uint64_t /*staging*/, GroupLookahead& ahead) {
  if (ahead.wait_budget() != WaitBudget::unlimited) return false;
  for (const PointToPoint& call : calls) {
    const Buffer buffer{call.address, call.bytes()};
    call.direction == Direction::send ? require_readable(buffer) : require_writable(buffer);
  }
  network_.messages().exchange(*this, calls, place, ahead);
  return true;
}

transport::WaitSet& StreamConnections::wait_set() {
  if (wait_set_) return *wait_set_;
  auto made = std::make_unique<transport::WaitSet>();
  const std::lock_guard lock(wait_mutex_);
  wait_set_ = std::move(made);
  return *wait_set_;
}

void StreamConnections::wake() {
  const std::lock_guard lock(wait_mutex_);
  if (wait_set_) wait_set_->ring();
}

void StreamConnections::part(Deadline deadline) {
  for (auto& [key, connection] : connections_) {
    if (connection.endpoint) network_.part_from(*connection.endpoint, deadline);
  }
}

void StreamConnections::cut() noexcept {
  for (auto& [key, connection] : connections_) {
    if (connection.endpoint) connection.endpoint->cut();
  }
}

void StreamConnections::count_traffic(const planner::Plan& plan) {
  Traffic& traffic = network_.counted();
  for (auto& [key, connection] : connections_)
    traffic.add(*connection.endpoint, connection.counted, plan.algorithm->name);
}

std::vector<int> StreamConnections::awaited() const {
  std::vector<int> ranks;
  for (const Execution* const execution : running_) {
    const std::vector<int> more = execution->awaited();
    ranks.insert(ranks.end(), more.begin(), more.end());
  }
  return ranks;
}

PlainMemory StreamConnections::Scratch::at_least(std::uint64_t size) {
  if (capacity < size) {
    capacity = 0;
    bytes.reset();
    bytes = std::make_unique_for_overwrite<std::byte[]>(size);
    capacity = size;
  }
  return PlainMemory(bytes.get());
}

}  // namespace hccl::network
