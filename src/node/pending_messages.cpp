// SPDX-License-Identifier: Apache-2.0
// Finds the next call to begin, and detects calls that conflict over memory.
#include "node/pending_messages.h"

#include <algorithm>

namespace hccl::node {
namespace {

AddressRange hull_of(const AddressRange& a, const AddressRange& b) {
  if (a.bytes == 0) return b;
  if (b.bytes == 0) return a;
  const std::uint64_t first = std::min(a.first, b.first);
  return {first, std::max(a.first + a.bytes, b.first + b.bytes) - first};
}

}  // namespace

void PendingMessages::clear() {
  items_.clear();
  first_ = current_end_ = next_send_ = next_receive_ = cannot_block_end_ = groups_ahead_ = 0;
  is_open_ = false;
  staging_ring_.clear();
  sources_ = destinations_ = {};
}

void PendingMessages::note(const MessageItem& item) {
  AddressRange& hull = item.sends() ? sources_ : destinations_;
  hull = hull_of(hull, item.range());
}

MessageItem* PendingMessages::next(std::size_t& from, Direction direction) {
  const auto may_begin = [&](const MessageItem& item) {
    return item.call->direction == direction && item.state == MessageItem::State::begun;
  };
  from = std::max(from, current_end_);
  while (from < items_.size() && !may_begin(items_[from])) ++from;
  return from < items_.size() ? &items_[from] : nullptr;
}

bool PendingMessages::conflicts(const PointToPoint& call) const {
  const bool sends = call.direction == Direction::send;
  const AddressRange range{call.address, call.bytes()};
  if (!(sends ? destinations_ : sources_).overlaps(range)) return false;
  return std::ranges::any_of(std::span(items_).subspan(first_), [&](const MessageItem& item) {
    return item.sends() != sends && item.range().overlaps(range);
  });
}

// Removes the items that have ended and reserves space for `more` items. Call between groups.
void PendingMessages::make_room_for(std::size_t more) {
  items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(first_));
  for (std::size_t* const index : {&next_send_, &next_receive_, &cannot_block_end_})
    *index -= std::min(*index, first_);
  first_ = 0;
  items_.reserve(std::max(items_.size() + more, 8 * kMaxAhead));
  sources_ = destinations_ = {};
  for (const MessageItem& item : items_) note(item);
}

}  // namespace hccl::node
