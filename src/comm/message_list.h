// SPDX-License-Identifier: Apache-2.0
// The sends and receives of one communicator in a group. One or two, as most groups have, need no
// memory of the heap.
#pragma once

#include "node/point_to_point.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace hccl::comm {

class MessageList {
 public:
  using Call = node::PointToPoint;

  MessageList() = default;
  explicit MessageList(const Call& only) { push_back(only); }
  MessageList(MessageList&& other) noexcept
      : few_(other.few_), many_(std::move(other.many_)), size_(std::exchange(other.size_, 0)) {}
  MessageList& operator=(MessageList&& other) noexcept {
    few_ = other.few_;
    many_ = std::move(other.many_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }
  MessageList(const MessageList&) = delete;
  MessageList& operator=(const MessageList&) = delete;
  ~MessageList() = default;

  void push_back(const Call& call) {
    if (size_ == kFew && many_.empty()) many_.assign(few_.begin(), few_.end());
    if (size_ < kFew && many_.empty()) {
      few_[size_] = call;
    } else {
      many_.push_back(call);
    }
    ++size_;
  }
  // Takes out what the predicate holds for.
  template <class Predicate>
  void erase_if(Predicate predicate) {
    const std::span<Call> rest = all();
    size_ = static_cast<std::size_t>(std::remove_if(rest.begin(), rest.end(), predicate) -
                                     rest.begin());
    if (!many_.empty()) {
      many_.resize(size_);
      if (size_ <= kFew) std::copy(many_.begin(), many_.end(), few_.begin());
      if (size_ <= kFew) many_.clear();
    }
  }

  [[nodiscard]] std::span<Call> all() {
    return many_.empty() ? std::span<Call>(few_.data(), size_) : std::span<Call>(many_);
  }
  [[nodiscard]] std::span<const Call> all() const {
    return many_.empty() ? std::span<const Call>(few_.data(), size_) : std::span<const Call>(many_);
  }

 private:
  static constexpr std::size_t kFew = 2;

  std::array<Call, kFew> few_;
  std::vector<Call> many_;  // all of them, if they are more
  std::size_t size_ = 0;
};

}  // namespace hccl::comm
