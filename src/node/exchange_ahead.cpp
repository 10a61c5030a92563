// SPDX-License-Identifier: Apache-2.0
// A rank that waits begins the groups behind: it offers their messages and takes those that have
// been offered to it, so that ranks that share a core take turns once in many groups. Nothing is
// merged: each group is complete in its turn.
#include "node/address_range.h"
#include "node/exchange.h"

#include <algorithm>

namespace hccl::node {
namespace {

AddressRange range_of(const PointToPoint& call) { return {call.address, call.bytes()}; }

// What is read, or stored to, by the calls so far.
template <std::size_t kMost>
class Ranges {
 public:
  [[nodiscard]] bool has_room_for(std::size_t count) const { return ranges_.has_room_for(count); }
  void add(const AddressRange& range) {
    const std::uint64_t end = std::max(hull_.first + hull_.bytes, range.first + range.bytes);
    hull_.first = ranges_.size() == 0 ? range.first : std::min(hull_.first, range.first);
    hull_.bytes = end - hull_.first;
    ranges_.push_back(range);
  }
  [[nodiscard]] bool overlap(const AddressRange& other) const {
    return hull_.overlaps(other) && std::ranges::any_of(ranges_, [&](const AddressRange& range) {
             return range.overlaps(other);
           });
  }

 private:
  InplaceVector<AddressRange, kMost> ranges_;
  AddressRange hull_;  // most calls are told apart by it
};

}  // namespace

// Collects what can be begun: not what would read what an earlier receive stores, nor store over
// what an earlier send reads, nor what needs pages, which may fail and would be the other group's
// error.
void Engine::Exchange::look_ahead() {
  looked_ahead_ = true;
  Ranges<2 * kMostAhead> sources, destinations;
  if (!sources.has_room_for(items_.size() + kMostAhead)) return;
  const auto note = [&](const PointToPoint& call) {
    (call.direction == Direction::send ? sources : destinations).add(range_of(call));
  };
  for (const Item& item : items_) note(*item.call);
  for (auto calls = ahead_.next(); !calls.empty(); calls = ahead_.next()) {
    const bool conflicts = std::ranges::any_of(calls, [&](const PointToPoint& call) {
      return (call.direction == Direction::send ? destinations : sources).overlap(range_of(call));
    });
    if (conflicts || !collect(calls)) return;
    std::ranges::for_each(calls, note);
  }
}

// All calls of a group, or none.
bool Engine::Exchange::collect(std::span<const PointToPoint> calls) {
  if (!items_ahead_.has_room_for(calls.size())) return false;
  const std::size_t before = items_ahead_.size();
  const device::ArenaView& memory = *engine_.arena_.view();
  for (const PointToPoint& call : calls) {
    Item item = item_of(call);
    if (call.count != 0 && !memory.populated(locate(item).file_offset, call.bytes())) {
      items_ahead_.shrink(before);
      return false;
    }
    items_ahead_.push_back(item);
  }
  return true;
}

// Returns whether anything was done. Receives may store to one place, so they keep their order.
bool Engine::Exchange::advance_ahead() {
  if (!looked_ahead_) look_ahead();
  const auto received = [](const Item& item) {
    return item.call->direction == Direction::send || item.stage == Stage::done;
  };
  bool receives_in_order = std::ranges::all_of(items_, received);
  bool moved = false;
  for (Item& item : items_ahead_) {
    const bool sends = item.call->direction == Direction::send;
    if (item.stage != Stage::begun || (!sends && !receives_in_order)) continue;
    // A mismatch is told in its turn.
    const bool can_begin =
        ready(item) && (sends || (!is_streamed(item) && item.message->count == item.call->count &&
                                  item.message->type == item.call->type));
    if (!can_begin) {
      receives_in_order = receives_in_order && sends;
      continue;
    }
    if (sends) {
      offer(item);
      item.stage = Stage::offered;
    } else {
      take(item);
      item.stage = Stage::done;
    }
    moved = true;
  }
  return moved;
}

}  // namespace hccl::node
