// SPDX-License-Identifier: Apache-2.0
// Credit-based flow control. The receiver's ring holds arrived bytes until the receiver releases
// them. Every message consumes one of the receiver's receive requests. The receiver returns both
// bytes and messages as credit, in batches.
#pragma once

#include "verbs/immediate.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace hccl::verbs {

// The size of the ring: large enough for the data that a link carries between two polls of the
// receiver, and small enough to fit in the second-level cache together with the source and the
// destination of a copy.
constexpr std::size_t kRingBytes = std::size_t{256} << 10;
// Maximum number of unacknowledged data messages.
constexpr std::uint32_t kMaxMessages = 128;
// Credit is due when this number of bytes has been released or this number of messages has arrived.
constexpr std::size_t kCreditBytes = kRingBytes / 4;
constexpr std::uint32_t kCreditMessages = kMaxMessages / 4;
// Maximum number of credit messages in flight. Each credit message returns at least kCreditBytes
// bytes or kCreditMessages messages.
constexpr std::uint32_t kMaxCredits = kRingBytes / kCreditBytes + kMaxMessages / kCreditMessages;
// Maximum number of bytes that the sender sends through the ring after a direct write, until the
// peer has consumed some of them. By then, the peer has probably advertised its next destination,
// and a direct write to that destination saves a copy.
constexpr std::size_t kRunAhead = kRingBytes / 2;
// Number of bytes that the receiver can lend in one piece. It is lower than kRunAhead, because
// credit for up to kCreditBytes may be outstanding.
constexpr std::size_t kViewBytes = kRunAhead - kCreditBytes;
static_assert(kRingBytes <= Immediate::kMaxBytes && kMaxMessages <= Immediate::kMaxMessages);

// Counts the bytes and messages that the sender may still send.
class SendWindow {
 public:
  // Returns the number of bytes sent through the ring since the beginning of the stream.
  [[nodiscard]] std::uint64_t sent() const { return sent_; }
  [[nodiscard]] std::size_t room() const {
    const std::uint64_t end = std::min(taken_ + kRingBytes, run_ahead_end_);
    return static_cast<std::size_t>(end - sent_);
  }
  [[nodiscard]] bool may_send() const { return messages_ < kMaxMessages; }
  void send_through_ring(std::size_t bytes) {
    sent_ += bytes;
    ++messages_;
  }
  void send_direct() {
    ++messages_;
    run_ahead_end_ = sent_ + kRunAhead;
  }
  // Applies a credit message. Returns false if it covers more than is unacknowledged.
  [[nodiscard]] bool credit(const Immediate& credit) {
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
  std::uint64_t run_ahead_end_ = kNoEnd;  // the limit of sent_, even if the ring has room
  std::uint32_t messages_ = 0;            // unacknowledged messages
};

// Counts the bytes and messages that have arrived, and the credit to return for them.
class ReceiveWindow {
 public:
  // Accounts for a message that brought `bytes` bytes through the ring (0 for a direct message).
  // Returns false if the peer exceeded its window.
  [[nodiscard]] bool arrive(std::size_t bytes) {
    if (bytes > kRingBytes - static_cast<std::size_t>(arrived_ - returned_) ||
        messages_ == kMaxMessages)
      return false;
    arrived_ += bytes;
    ++messages_;
    return true;
  }
  // Returns the number of bytes that arrived through the ring since the beginning of the stream.
  [[nodiscard]] std::uint64_t arrived() const { return arrived_; }
  [[nodiscard]] std::uint64_t released() const { return released_; }
  // Returns the number of bytes that have arrived and are not released.
  [[nodiscard]] std::size_t held() const { return static_cast<std::size_t>(arrived_ - released_); }
  [[nodiscard]] std::size_t lent() const { return static_cast<std::size_t>(lent_ - released_); }
  void lend(std::size_t count) { lent_ = std::max(lent_, released_ + count); }
  // Releases up to `count` lent bytes and returns how many it released.
  std::size_t release(std::size_t count) {
    count = std::min(count, lent());
    released_ += count;
    return count;
  }

  [[nodiscard]] bool credit_due() const {
    return released_ - returned_ >= kCreditBytes || messages_ >= kCreditMessages;
  }
  // Returns whether credit can be deferred until the receiver is idle: less than kCreditBytes of
  // room would be returned, and the peer may still send more than half of kMaxMessages.
  [[nodiscard]] bool credit_can_wait() const {
    return released_ - returned_ < kCreditBytes && messages_ < kMaxMessages / 2;
  }
  // Returns the credit to send and counts it as sent.
  [[nodiscard]] Immediate take_credit() {
    const Immediate credit{Immediate::Kind::credit,
                           static_cast<std::uint32_t>(released_ - returned_), messages_};
    returned_ = released_;
    messages_ = 0;
    return credit;
  }

 private:
  std::uint64_t arrived_ = 0;
  std::uint64_t lent_ = 0;
  std::uint64_t released_ = 0;
  std::uint64_t returned_ = 0;
  std::uint32_t messages_ = 0;  // messages received that have not been acknowledged
};

}  // namespace hccl::verbs
