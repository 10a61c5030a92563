// SPDX-License-Identifier: Apache-2.0
// The sends and receives in progress on one stream of a communicator: the current group, and later
// groups that have begun ahead of their turn.
#pragma once

#include "call/point_to_point.h"
#include "device/arena.h"
#include "node/address_range.h"
#include "node/mailbox.h"
#include "node/staging_layout.h"
#include "node/staging_ring.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace hccl::node {

// A call and its progress.
struct MessageItem {
  enum class State : std::uint8_t { begun, offered, draining, done };

  const PointToPoint* call;
  Mailbox* mailbox;
  Message* message;
  std::uint64_t bytes;
  State state = State::begun;
  std::uint64_t moved = 0;                 // bytes, if the message comes in pieces
  device::Placement at{};                  // of the call's device memory
  std::optional<std::uint64_t> in_ring{};  // offset in the message ring, if the message is there

  [[nodiscard]] bool sends() const { return call->direction == Direction::send; }
  [[nodiscard]] AddressRange range() const { return {call->address, bytes}; }
  [[nodiscard]] bool is_on_host() const { return !device::is_device_address(call->address); }
  // Returns a pointer to the call's memory, which must be host memory.
  [[nodiscard]] std::byte* host_memory() const { return host_pointer(call->address); }
};

class PendingMessages {
 public:
  static constexpr std::size_t kMaxAhead = 32;  // items

  // `reuse`: how the stream's message ring is reused.
  explicit PendingMessages(StagingRing::Reuse reuse = StagingRing::Reuse::early)
      : staging_ring_(kMessageRingBytes, reuse) {}

  // Starts or resumes the current group, which has `calls` calls. Pointers to its items, and to
  // items added after them, stay valid until close(). Returns false if the group has not been added
  // yet: the caller must then push_back() its calls.
  [[nodiscard]] bool open(std::size_t calls) {
    if (is_open_) return true;
    is_open_ = true;
    if (items_.capacity() - items_.size() < calls + kMaxAhead) make_room_for(calls + kMaxAhead);
    current_end_ = first_ + calls;
    if (groups_ahead_ == 0) return false;
    --groups_ahead_;
    return true;
  }
  // Ends the current group.
  void close() {
    first_ = current_end_;
    is_open_ = false;
    if (first_ == items_.size()) clear();
  }
  void clear();

  void push_back(const MessageItem& item) {
    note(item);
    items_.push_back(item);
  }
  void take_back(std::size_t items) {
    items_.erase(items_.end() - static_cast<std::ptrdiff_t>(items), items_.end());
  }
  // Marks the calls added last as a group that begins ahead of its turn.
  void end_group() { ++groups_ahead_; }
  [[nodiscard]] std::size_t groups_ahead() const { return groups_ahead_; }
  [[nodiscard]] bool has_room_for(std::size_t calls) const {
    return items_.size() - current_end_ + calls <= kMaxAhead;
  }

  [[nodiscard]] std::span<MessageItem> current() {
    return std::span(items_).subspan(first_, current_end_ - first_);
  }
  [[nodiscard]] std::span<const MessageItem> current() const {
    return std::span(items_).subspan(first_, current_end_ - first_);
  }
  // Returns the items of the group that was added last, which has `calls` calls.
  [[nodiscard]] std::span<const MessageItem> last(std::size_t calls) const {
    return std::span(items_).last(calls);
  }
  // Return the first send, and the first receive, in state `begun` that follows the current group;
  // null if there is none.
  [[nodiscard]] MessageItem* next_send() { return next(next_send_, Direction::send); }
  [[nodiscard]] MessageItem* next_receive() { return next(next_receive_, Direction::receive); }

  // Returns whether cannot_block() is true for all items. Does not call it again for an item for
  // which it has returned true.
  template <class CannotBlock>
  [[nodiscard]] bool none_can_block(CannotBlock cannot_block) {
    cannot_block_end_ = std::max(cannot_block_end_, first_);
    while (cannot_block_end_ < items_.size() &&
           cannot_block(std::as_const(items_[cannot_block_end_])))
      ++cannot_block_end_;
    return cannot_block_end_ == items_.size();
  }

  // Returns the reservations in the stream's message ring (message_ring_offset()).
  [[nodiscard]] StagingRing& staging_ring() { return staging_ring_; }

  // Returns whether a call would read memory that an earlier receive writes, or write memory that
  // an earlier send reads.
  [[nodiscard]] bool conflicts(const PointToPoint& call) const;

 private:
  void note(const MessageItem& item);
  void make_room_for(std::size_t more);
  [[nodiscard]] MessageItem* next(std::size_t& from, Direction direction);

  std::vector<MessageItem> items_;
  std::size_t first_ = 0, current_end_ = 0;  // of the current group; earlier items have ended
  std::size_t next_send_ = 0, next_receive_ = 0, cannot_block_end_ = 0;
  std::size_t groups_ahead_ = 0;
  bool is_open_ = false;
  StagingRing staging_ring_;
  AddressRange sources_, destinations_;  // hulls of the items' ranges; rule out most conflicts
};

}  // namespace hccl::node
