// SPDX-License-Identifier: Apache-2.0
// Flow control. A ring at the receiver holds the bytes that have come through it and are not
// released; every message needs a receive request there, too. Both come back as credit, told in
// large pieces.
#pragma once

#include "verbs/message.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace hccl::verbs {

// Holds what a link needs between two turns of its receiver, and fits the second-level cache with
// what is copied from and to.
constexpr std::size_t kRingBytes = std::size_t{256} << 10;
// Data messages that the receiver has not acknowledged.
constexpr std::uint32_t kMostMessages = 128;
// The receiver returns credit once it has consumed this many bytes.
constexpr std::size_t kCreditBytes = kRingBytes / 4;
constexpr std::uint32_t kCreditMessages = kMostMessages / 4;
// Credits that can be under way at a time: each returns kCreditBytes or kCreditMessages of a full
// window.
constexpr std::uint32_t kMostCredits = kRingBytes / kCreditBytes + kMostMessages / kCreditMessages;
// How much goes through the ring behind bytes that went straight, until the peer takes of it: those
// are likely to be invited, too, and spared a copy.
constexpr std::size_t kRunAhead = kRingBytes / 2;
// The bytes that the peer can see in one piece: it may have taken less than it tells of before
// that.
constexpr std::size_t kViewBytes = kRunAhead - kCreditBytes;
static_assert(kRingBytes <= Message::kMostBytes && kMostMessages <= Message::kMostMessages);

// The window of the end that writes.
class SendWindow {
 public:
  // Bytes that went through the ring.
  [[nodiscard]] std::uint64_t sent() const { return sent_; }
  [[nodiscard]] std::size_t room() const {
    const std::uint64_t end = std::min(taken_ + kRingBytes, run_ahead_end_);
    return static_cast<std::size_t>(end - sent_);
  }
  [[nodiscard]] bool may_send() const { return messages_ < kMostMessages; }
  void send_through_ring(std::size_t bytes) {
    sent_ += bytes;
    ++messages_;
  }
  void send_straight() {
    ++messages_;
    run_ahead_end_ = sent_ + kRunAhead;
  }
  // False if the peer says that it has taken more than there was.
  [[nodiscard]] bool credit(const Message& credit) {
    if (credit.bytes > sent_ - taken_ || credit.messages > messages_) return false;
    taken_ += credit.bytes;
    messages_ -= credit.messages;
    if (taken_ + kRunAhead > run_ahead_end_) run_ahead_end_ = kNoEnd;
    return true;
  }

 private:
  static constexpr std::uint64_t kNoEnd = ~std::uint64_t{0};

  std::uint64_t sent_ = 0;
  std::uint64_t taken_ = 0;
  std::uint64_t run_ahead_end_ = kNoEnd;  // of what may be sent, whatever room there is
  std::uint32_t messages_ = 0;            // not acknowledged
};

// The window of the end that reads.
class ReceiveWindow {
 public:
  // Accounts for a message that came through the ring with `bytes`. Returns false if the peer has
  // written more than it may.
  [[nodiscard]] bool arrive(std::size_t bytes) {
    if (bytes > kRingBytes - static_cast<std::size_t>(arrived_ - told_) ||
        messages_ == kMostMessages)
      return false;
    arrived_ += bytes;
    ++messages_;
    return true;
  }
  // Returns the bytes that went through the ring since the beginning.
  [[nodiscard]] std::uint64_t arrived() const { return arrived_; }
  [[nodiscard]] std::uint64_t released() const { return released_; }
  // Returns the bytes that have come and are not released.
  [[nodiscard]] std::size_t held() const { return static_cast<std::size_t>(arrived_ - released_); }
  [[nodiscard]] std::size_t lent() const { return static_cast<std::size_t>(lent_ - released_); }
  void lend(std::size_t count) { lent_ = std::max(lent_, released_ + count); }
  // Returns what was released of the count: no more than is lent.
  std::size_t release(std::size_t count) {
    count = std::min(count, lent());
    released_ += count;
    return count;
  }

  [[nodiscard]] bool credit_due() const {
    return released_ - told_ >= kCreditBytes || messages_ >= kCreditMessages;
  }
  // Returns whether credit may be sent when there is nothing else to do: the peer has half of its
  // messages left. The bytes of large ones it may be waiting for.
  [[nodiscard]] bool credit_can_wait() const {
    return released_ - told_ < kCreditBytes && messages_ < kMostMessages / 2;
  }
  // Returns the credit to send, and counts it as sent.
  [[nodiscard]] Message take_credit() {
    const Message credit{Message::Kind::credit, static_cast<std::uint32_t>(released_ - told_),
                         messages_};
    told_ = released_;
    messages_ = 0;
    return credit;
  }

 private:
  std::uint64_t arrived_ = 0;
  std::uint64_t lent_ = 0;
  std::uint64_t released_ = 0;
  std::uint64_t told_ = 0;
  std::uint32_t messages_ = 0;  // that have come and are not acknowledged
};

}  // namespace hccl::verbs
