// SPDX-License-Identifier: Apache-2.0
// Executes the schedules with a work list of the ranks that may be able to advance.
#include "proof/symbolic_execution.h"

#include "base/text.h"
#include "schedule/printer.h"

#include <algorithm>

namespace hccl::proof {

using schedule::Action;

SymbolicExecution::Member::Member(const Shape& shape_in, const Schedule& schedule_in)
    : shape(&shape_in),
      schedule(&schedule_in),
      memory(shape_in, schedule_in),
      hazards(shape_in, schedule_in) {
  if (shape->collective != Collective::barrier) return;
  reached_by.resize(shape->ranks());
  reached_by[static_cast<std::size_t>(shape->rank)] = true;
}

SymbolicExecution::SymbolicExecution(std::span<const Shape> shapes,
                                     std::span<const Schedule> schedules) {
  members_.reserve(shapes.size());
  for (std::size_t i = 0; i < shapes.size(); ++i) members_.emplace_back(shapes[i], schedules[i]);
}

std::optional<Violation> SymbolicExecution::run() {
  for (Member& member : members_) {
    if (auto violation = enter_step(member)) return violation;
    queue(member.shape->rank);
  }
  while (!queue_.empty()) {
    Member& member = at(queue_.back());
    queue_.pop_back();
    member.queued = false;
    if (auto violation = advance(member)) return violation;
  }
  const auto finished = [](const Member& member) { return member.finished(); };
  if (std::all_of(members_.begin(), members_.end(), finished)) return std::nullopt;
  return stuck();
}

void SymbolicExecution::queue(std::int32_t rank) {
  if (std::exchange(at(rank).queued, true)) return;
  queue_.push_back(rank);
}

void SymbolicExecution::wake_those_waiting_for(Member& member) {
  for (const std::int32_t rank : member.waiting) queue(rank);
  member.waiting.clear();
}

std::optional<Violation> SymbolicExecution::enter_step(Member& member) {
  hops_ = std::max(hops_, member.end);
  member.start = member.end;
  member.came.clear();
  if (member.finished()) return std::nullopt;
  const Step& step = member.current();
  const auto receives = member.schedule->receives(step);
  member.received = 0;
  member.sends_left = step.sends.count;
  member.reached_by_before = member.reached_by;
  member.sends.clear();
  for (std::uint32_t i = 0; i < step.sends.count; ++i) {
    const Transfer& send = member.schedule->transfers[step.sends.first + i];
    std::uint32_t after = 0;
    for (std::uint32_t k = 0; send.forward && k < receives.size(); ++k) {
      if (receives[k].span == send.span) after = k + 1;
    }
    member.sends.push_back({send.peer, step.sends.first + i, after});
  }
  std::stable_sort(member.sends.begin(), member.sends.end(),
                   [](const Send& a, const Send& b) { return a.peer < b.peer; });
  return member.hazards.verify(member.step);
}

std::optional<Violation> SymbolicExecution::advance(Member& member) {
  while (!member.finished()) {
    const std::uint32_t received = member.received;
    while (member.received < member.current().receives.count && receive(member)) ++member.received;
    if (failure_) return failure_;
    if (member.received != received) wake_those_waiting_for(member);  // they may wait for a forward
    if (!member.done_with_step()) return std::nullopt;
    ++member.step;
    if (auto violation = enter_step(member)) return violation;
    wake_those_waiting_for(member);
  }
  return std::nullopt;
}

bool SymbolicExecution::receive(Member& member) {
  const Transfer& receive = member.schedule->receives(member.current())[member.received];
  if (receive.peer == member.shape->rank) {
    transfer(member, receive.operand, member, receive);
    member.came.push_back(member.start);
    return !failure_;
  }
  Member& peer = at(receive.peer);
  Send* const send = next_send(peer, member.shape->rank);
  if (send == nullptr || peer.received < send->after_receives) {
    peer.waiting.push_back(member.shape->rank);
    return false;
  }
  transfer(peer, peer.schedule->transfers[send->transfer].span, member, receive);
  send->done = true;
  const std::uint64_t time = arrival(peer, *send, member);
  member.came.push_back(time);
  member.end = std::max(member.end, time);
  peer.end = std::max(peer.end, time);
  if (--peer.sends_left == 0) queue(receive.peer);
  return !failure_;
}

std::uint64_t SymbolicExecution::arrival(const Member& from, const Send& send, const Member& to) {
  std::uint64_t begin = std::max(from.start, to.start);
  const Transfer& transfer = from.schedule->transfers[send.transfer];
  const auto receives = from.schedule->receives(from.current());
  for (std::uint32_t i = 0; i < send.after_receives; ++i) {
    if (receives[i].span == transfer.span) begin = std::max(begin, from.came[i]);
  }
  return begin + 1;
}

SymbolicExecution::Send* SymbolicExecution::next_send(Member& from, std::int32_t to) {
  if (from.finished()) return nullptr;
  auto send = std::lower_bound(from.sends.begin(), from.sends.end(), to,
                               [](const Send& a, std::int32_t peer) { return a.peer < peer; });
  while (send != from.sends.end() && send->peer == to && send->done) ++send;
  return send != from.sends.end() && send->peer == to ? &*send : nullptr;
}

void SymbolicExecution::transfer(Member& from, const Span& sent, Member& to,
                                 const Transfer& receive) {
  const Span& into = receive.span;
  if (sent.chunk_count != into.chunk_count)
    return fail(Property::completes, to,
                text("receives ", text_of(into), ", but rank ", from.shape->rank, " sends ",
                     text_of(sent), " from its step ", from.step));
  if (into.chunk_count == 0 && !to.reached_by.empty()) {
    for (std::size_t i = 0; i < to.reached_by.size(); ++i)
      to.reached_by[i] = to.reached_by[i] || from.reached_by_before[i];
  }
  const bool local = &from == &to;
  const Span& operand = local ? into : receive.operand;  // of a reduction
  const Location source = location_of(*from.shape, *from.schedule, sent);
  const Location target = location_of(*to.shape, *to.schedule, into);
  const Location other = location_of(*to.shape, *to.schedule, operand);
  const std::uint32_t block_chunks = to.schedule->block_chunks;
  for (std::uint32_t i = 0; i < into.chunk_count; ++i) {
    Cell cell = from.memory.read(source, i);
    const bool reduce = receive.action == Action::reduce;
    const Cell second = reduce ? to.memory.read(other, i) : cell;
    if (cell.tree == 0 || second.tree == 0)
      return fail(Property::exactly_once, to,
                  text("takes ", text_of(cell.tree == 0 ? sent : operand), " of rank ",
                       (cell.tree == 0 ? from : to).shape->rank, ", which has not been written"));
    const std::uint32_t length = (into.first_chunk + i) % block_chunks;
    const std::uint32_t sent_length = (sent.first_chunk + i) % block_chunks;
    if (cell.length != length || second.length != length || sent_length != length)
      return fail(Property::exactly_once, to,
                  text("puts chunk ", cell.length, " (of a block) of rank ", from.shape->rank,
                       " into ", text_of(into), " as chunk ", length));
    if (reduce) cell = reduced(cell, second);
    to.memory.write(target, i, cell);
  }
}

void SymbolicExecution::fail(Property property, const Member& member, const std::string& reason) {
  failure_ =
      Violation{property, text("rank ", member.shape->rank, ", step ", member.step, ": ", reason)};
}

// Names one rank that cannot advance: one that waits for a receive or, if none does, one whose send
// is never received.
Violation SymbolicExecution::stuck() const {
  for (const Member& member : members_) {
    if (member.finished()) continue;
    const auto receives = member.schedule->receives(member.current());
    if (member.received == receives.size()) continue;
    const Transfer& receive = receives[member.received];
    const Member& peer = at(receive.peer);
    return {
        Property::completes,
        text("rank ", member.shape->rank, ", step ", member.step, ": waits for ",
             text_of(receive.span), " from rank ", receive.peer, ", which ",
             peer.finished() ? std::string("has finished") : text("is at its step ", peer.step))};
  }
  std::string reason = "no rank can advance";
  for (const Member& member : members_) {
    for (const Send& send : member.sends) {
      if (member.finished() || send.done) continue;
      reason = text("rank ", member.shape->rank, ", step ", member.step, ": sends ",
                    text_of(member.schedule->transfers[send.transfer].span), " to rank ", send.peer,
                    ", which never receives it");
    }
  }
  return {Property::completes, reason};
}

}  // namespace hccl::proof
