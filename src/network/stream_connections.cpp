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

#include <algorithm>
#include <memory>

namespace hccl::network {
namespace {

// Returns whether a call stages its output until the data of all ranks has arrived. Short calls do,
// because copying their output takes less time than a round of messages among all ranks. A reduce,
// which moves data to one rank only, and a call without elements do not. The result is the same on
// all ranks.
bool stages_output(const CollectiveCall& call, int ranks) {
  if (call.traits().receivers == RankSet::root || call.count == 0) return false;
  constexpr std::uint64_t kStagedBytesPerRank = 128 << 10;
  constexpr std::uint64_t kMostStagedBytes = 1 << 20;
  const std::uint64_t bytes = std::max(send_bytes(call, ranks), recv_bytes(call, ranks));
  return bytes <=
         std::min(kStagedBytesPerRank * static_cast<std::uint64_t>(ranks), kMostStagedBytes);
}

}  // namespace

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
  ScopeExit unless_done([this] { runner_.cut(); });
  run_watched(call, plan, header, input, target, ahead,
              !staged && call.collective != Collective::barrier);
  if (call.reduction() == hcclAvg) divide(call, target, output, ranks);
  if (staged && !keeps_own_data(call, rank)) copy_memory(aside, recv.get(), output);
  unless_done.dismiss();
  runner_.count_traffic(plan.algorithm->name);
  finish_call(call, plan.algorithm->name);
  return true;
}

void StreamConnections::finish_call(const CollectiveCall& call, std::string_view algorithm) {
  network_.stall_reports().note_done({ordinal_, calls_, algorithm}, call);
  ++calls_;
}

void StreamConnections::run_watched(const CollectiveCall& call, const planner::Plan& plan,
                                    const CallHeader& header, Memory& send, Memory& recv,
                                    const CallLookahead& ahead, bool agrees_first) {
  const auto name = [&] { return describe(call); };
  try {
    CallWatchdog watch(network_, {{ordinal_, calls_, plan.algorithm->name},
                                  true,
                                  name,
                                  [this] { return runner_.awaited(); },
                                  &ahead,
                                  id_});
    try {
      if (agrees_first) agree(header, watch);
      bool is_asked_to_agree = false;
      if (call.count != 0 || call.collective == Collective::barrier) {
        is_asked_to_agree =
            runner_.run(group_, {plan, call, header, send, recv}, wait_set(), watch);
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
  static_cast<void>(runner_.run(group_, {plan, nothing, agreement, none, none}, wait_set(), watch));
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

void StreamConnections::part(Deadline deadline) { runner_.part(deadline); }

}  // namespace hccl::network
