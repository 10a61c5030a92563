// SPDX-License-Identifier: Apache-2.0
// The sends and receives of one communicator in a group. Stores up to two messages without an
// allocation, which is enough for most groups.
#pragma once

#include "base/inplace_vector.h"
#include "call/point_to_point.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace hccl::comm {

class MessageList {
 public:
  using Call = PointToPoint;

  MessageList() = default;
  explicit MessageList(const Call& only) { push_back(only); }
  MessageList(MessageList&& other) noexcept : few_(other.few_), many_(std::move(other.many_)) {
    other.few_.shrink(0);
  }
  MessageList& operator=(MessageList&& other) noexcept {
    few_ = other.few_;
    many_ = std::move(other.many_);
    other.few_.shrink(0);
    return *this;
  }
  MessageList(const MessageList&) = delete;
  MessageList& operator=(const MessageList&) = delete;
  ~MessageList() = default;

  void push_back(const Call& call) {
    if (many_.empty() && few_.has_room_for(1)) {
      few_.push_back(call);
      return;
    }
    if (many_.empty()) {
      many_.assign(few_.begin(), few_.end());
      few_.shrink(0);
    }
    many_.push_back(call);
  }
  // Removes the messages for which the predicate returns true.
  template <class Predicate>
  void erase_if(Predicate predicate) {
    const std::span<Call> calls = all();
    const auto left = static_cast<std::size_t>(
        std::remove_if(calls.begin(), calls.end(), predicate) - calls.begin());
    if (many_.empty()) {
      few_.shrink(left);
    } else {
      many_.resize(left);
    }
  }

  [[nodiscard]] std::span<Call> all() {
    return many_.empty() ? std::span<Call>(few_.begin(), few_.size()) : std::span<Call>(many_);
  }
  [[nodiscard]] std::span<const Call> all() const {
    return many_.empty() ? std::span<const Call>(few_.begin(), few_.size())
                         : std::span<const Call>(many_);
  }

 private:
  InplaceVector<Call, 2> few_;
  std::vector<Call> many_;  // all messages, if there are more than few_ can hold
};

}  // namespace hccl::comm
