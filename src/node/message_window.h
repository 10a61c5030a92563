// SPDX-License-Identifier: Apache-2.0
// The sends and receives of one stream of a communicator that are under way: those of the group
// whose turn it is, and of the groups behind it that have been begun. Private to the engine's
// files.
#pragma once

#include "device/arena.h"
#include "node/address_range.h"
#include "node/mailbox.h"
#include "node/point_to_point.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace hccl::node {

// A call, and how far it has come.
struct MessageItem {
  enum class Stage : std::uint8_t { begun, offered, draining, done };

  const PointToPoint* call;
  Mailbox* mailbox;
  Message* message;
  std::uint64_t bytes;
  Stage stage = Stage::begun;
  std::uint64_t moved = 0;  // bytes of a streamed message
  device::Placement at{};   // of its device memory, from the message's first byte on

  [[nodiscard]] bool sends() const { return call->direction == Direction::send; }
  [[nodiscard]] AddressRange range() const { return {call->address, bytes}; }
};

class MessageWindow {
 public:
  static constexpr std::size_t kMostAhead = 32;  // items

  // The turn of the group that has `calls`; the same again if it was left. Its items stay where
  // they are until its end, and so do as many behind them as there may be. Returns whether they are
  // here; else the caller puts them here.
  [[nodiscard]] bool open(std::size_t calls) {
    if (is_open_) return true;
    is_open_ = true;
    if (items_.capacity() - items_.size() < calls + kMostAhead) make_room_for(calls + kMostAhead);
    current_end_ = first_ + calls;
    if (groups_ahead_ == 0) return false;
    --groups_ahead_;
    return true;
  }
  // The group has ended.
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
  // All calls of a group have been put behind the others.
  void end_group() { ++groups_ahead_; }
  [[nodiscard]] std::size_t groups_ahead() const { return groups_ahead_; }
  [[nodiscard]] bool has_room_for(std::size_t calls) const {
    return items_.size() - current_end_ + calls <= kMostAhead;
  }

  [[nodiscard]] std::span<MessageItem> current() {
    return std::span(items_).subspan(first_, current_end_ - first_);
  }
  [[nodiscard]] std::span<const MessageItem> current() const {
    return std::span(items_).subspan(first_, current_end_ - first_);
  }
  // Returns the calls of the group that was added last.
  [[nodiscard]] std::span<const MessageItem> last(std::size_t calls) const {
    return std::span(items_).last(calls);
  }
  // The first send, or receive, behind the group that has not been begun; null if there is none.
  [[nodiscard]] MessageItem* next_send() { return next(next_send_, Direction::send); }
  [[nodiscard]] MessageItem* next_receive() { return next(next_receive_, Direction::receive); }

  // Returns whether the predicate holds for all items. Does not ask again for those it has held
  // for.
  template <class Predicate>
  [[nodiscard]] bool all_are(Predicate sure) {
    sure_end_ = std::max(sure_end_, first_);
    while (sure_end_ < items_.size() && sure(std::as_const(items_[sure_end_]))) ++sure_end_;
    return sure_end_ == items_.size();
  }

  // Returns whether a call would read memory that an earlier receive writes, or write memory that
  // an earlier send reads.
  [[nodiscard]] bool conflicts(const PointToPoint& call) const;

 private:
  void note(const MessageItem& item);
  void make_room_for(std::size_t more);
  [[nodiscard]] MessageItem* next(std::size_t& from, Direction direction);

  std::vector<MessageItem> items_;
  std::size_t first_ = 0, current_end_ = 0;  // of the group; what stands before has ended
  std::size_t next_send_ = 0, next_receive_ = 0, sure_end_ = 0;
  std::size_t groups_ahead_ = 0;
  bool is_open_ = false;
  AddressRange sources_, destinations_;  // around them: most calls are told apart by these
};

}  // namespace hccl::node
