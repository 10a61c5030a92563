// SPDX-License-Identifier: Apache-2.0
// Runs the steps of a schedule in order, and the flows of a step concurrently. A flow never
// overtakes an earlier one that writes the same chunks, so data is folded in the order of the
// schedule.
#include "network/execution.h"

#include "base/error.h"

#include <algorithm>

namespace hccl::network {
namespace {

using schedule::Span;
using schedule::Transfer;

bool reads_operand(const Transfer& transfer, int rank) {
  return transfer.action == schedule::Action::reduce || transfer.peer == rank;
}

bool is_open(const Flow& flow) { return !flow.complete(); }

}  // namespace

Execution::Execution(const schedule::Schedule& schedule, const schedule::Chunking& chunking,
                     const Operands& operands, const CallHeader& header, int rank, Streams& streams,
                     std::pmr::memory_resource& memory)
    : schedule_(schedule),
      layout_(chunking, operands),
      header_(header),
      rank_(rank),
      streams_(streams),
      connections_(&memory),
      sends_(&memory),
      receives_(&memory) {
  begin_step();
}

bool Execution::advance() {
  if (held()) return false;
  constexpr int kMostRounds = 64;  // limited: the caller must check for faults and deadlines
  bool moved = false;
  for (int round = 0; round < kMostRounds && !complete(); ++round) {
    bool moves = false;
    for (Flow& flow : sends_) {  // sends first, because peers wait for them
      if (!flow.complete()) moves = move_send(flow, layout_, header_.bytes()) > 0 || moves;
    }
    for (Flow& flow : receives_) {
      if (flow.complete() || (wants_header(flow) && !take_header(*flow.connection))) continue;
      moves = move_receive(flow, layout_) > 0 || moves;
    }
    if (!moves && !step_over()) break;
    moved = true;
  }
  return moved;
}

// Creates the flows of the current step.
void Execution::begin_step() {
  sends_.clear();
  receives_.clear();
  if (complete()) return;
  const schedule::Step& step = schedule_.steps[step_];
  receives_.reserve(step.receives.count);  // keeps addresses valid: flows point at each other
  sends_.reserve(step.sends.count);
  for (const Transfer& transfer : schedule_.receives(step)) {
    Flow flow{&transfer, nullptr, layout_.bytes(transfer.span)};
    if (transfer.peer != rank_) flow.connection = &connection_to(transfer.peer);
    for (const Flow& earlier : receives_) hold_receive_behind(flow, earlier);
    receives_.push_back(std::move(flow));
  }
  for (const Transfer& transfer : schedule_.sends(step)) {
    Flow flow{&transfer, &connection_to(transfer.peer), layout_.bytes(transfer.span)};
    for (const Flow& earlier : sends_) {
      if (earlier.connection == flow.connection) flow.dependencies.push_back({&earlier, true});
    }
    for (const Flow& receive : receives_) {
      if (transfer.forward && touch(receive.transfer->span, transfer.span))
        flow.dependencies.push_back({&receive, false});
    }
    sends_.push_back(std::move(flow));
  }
}

// Makes a receive wait for an earlier receive of the step if both use the same connection, or if
// one of them writes memory that both use. In the latter case, both use the same range of memory:
// the verifier checks this (proof/hazards.h).
void Execution::hold_receive_behind(Flow& flow, const Flow& earlier) const {
  if (flow.connection != nullptr && earlier.connection == flow.connection) {
    flow.dependencies.push_back({&earlier, true});
    return;
  }
  const Transfer& mine = *flow.transfer;
  const Transfer& theirs = *earlier.transfer;
  if (touch(mine.span, theirs.span) ||
      (reads_operand(mine, rank_) && touch(mine.operand, theirs.span)) ||
      (reads_operand(theirs, rank_) && touch(mine.span, theirs.operand)))
    flow.dependencies.push_back({&earlier, false});
}

bool Execution::touch(const Span& a, const Span& b) const {
  if (a.chunk_count == 0 || b.chunk_count == 0) return false;
  if (layout_.bytes(a) == 0 || layout_.bytes(b) == 0) return false;
  return layout_.address(a) == layout_.address(b);
}

bool Execution::step_over() {
  if (std::ranges::any_of(sends_, is_open) || std::ranges::any_of(receives_, is_open)) return false;
  const auto unflushed = [](const Flow& flow) { return !flow.connection->endpoint->flushed(); };
  if (is_last_step() ? !is_flushed() : std::ranges::any_of(sends_, unflushed)) return false;
  ++step_;
  begin_step();
  return true;
}

// Returns whether the transports neither read nor write the call's memory any more.
bool Execution::is_flushed() const {
  return std::ranges::all_of(connections_, [](const PeerConnection& connection) {
    return connection.endpoint->flushed();
  });
}

PeerConnection& Execution::connection_to(int peer) {
  const auto found = std::ranges::find(connections_, peer, &PeerConnection::peer);
  if (found != connections_.end()) return *found;
  connections_.push_back({peer, &streams_.to(peer)});
  return connections_.back();
}

// Returns whether the header has arrived. Throws CallMismatch if it does not match.
bool Execution::take_header(PeerConnection& connection) {
  const auto arrived = connection.endpoint->try_receive(sizeof(CallHeader));
  if (arrived.size() < sizeof(CallHeader)) return false;
  const CallHeader theirs = CallHeader::from(arrived);
  if (!header_.is_same_call(theirs)) {
    throw CallMismatch(hcclInvalidUsage, why_unlike(streams_.number_of(rank_), header_,
                                                    streams_.number_of(connection.peer), theirs));
  }
  header_.confirm |= theirs.confirm;
  connection.endpoint->release(sizeof(CallHeader));
  connection.header_received = true;
  return true;
}

void Execution::add_interests(std::vector<transport::WaitSet::Entry>& entries) const {
  if (held()) return;
  const auto entry_of = [&](const PeerConnection& connection) -> transport::Interest& {
    auto found =
        std::ranges::find(entries, connection.endpoint, &transport::WaitSet::Entry::endpoint);
    if (found == entries.end()) found = entries.insert(entries.end(), {connection.endpoint, {}});
    return found->interest;
  };
  const auto held_up = [](const Flow& flow, bool receives) {
    return flow.allowed() == flow.moved && !(receives && wants_header(flow));
  };
  for (const Flow& flow : receives_) {
    if (flow.connection != nullptr && !flow.complete() && !held_up(flow, true))
      entry_of(*flow.connection).readable = true;
  }
  bool waits = std::ranges::any_of(receives_, is_open) || std::ranges::any_of(sends_, is_open);
  for (const Flow& flow : sends_) {
    // Even after a send is complete, the transport may still be reading its bytes in place.
    if (!flow.complete()) {
      if (!held_up(flow, false)) entry_of(*flow.connection).writable = true;
    } else if (!flow.connection->endpoint->flushed()) {
      entry_of(*flow.connection).flushed = true;
      waits = true;
    }
  }
  if (!waits && is_last_step()) {
    for (const PeerConnection& connection : connections_) {
      if (connection.endpoint->flushed()) continue;
      entry_of(connection).flushed = true;
      waits = true;
    }
  }
  if (waits) return;
  // All endpoints have been flushed since advance(): makes the wait end at once.
  for (const PeerConnection& connection : connections_) entry_of(connection).flushed = true;
}

std::vector<int> Execution::awaited() const {
  std::vector<int> peers;
  if (held()) return peers;
  for (const auto* const flows : {&receives_, &sends_}) {
    for (const Flow& flow : *flows) {
      if (flow.connection == nullptr || flow.complete() || flow.allowed() == flow.moved) continue;
      peers.push_back(streams_.number_of(flow.connection->peer));
    }
  }
  std::ranges::sort(peers);
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  return peers;
}

}  // namespace hccl::network
