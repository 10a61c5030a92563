// SPDX-License-Identifier: Apache-2.0
// Tests SendWindow and ReceiveWindow while data and credits stay in flight for random times. The
// ring must not overflow, receive requests must not run out, and neither end may wait forever.
#include "verbs/flow_control.h"

#include "ranks.h"
#include "verbs/sender.h"

#include <algorithm>
#include <array>
#include <deque>
#include <random>

#include <gtest/gtest.h>

namespace hccl::verbs {
namespace {

using hccl::test::scaled;
using hccl::test::test_seed;
using Kind = Immediate::Kind;

// The windows of both ends, and the messages in flight between them. Checks that no message
// overflows the ring or lacks a receive request.
class Traffic {
 public:
  explicit Traffic(std::uint64_t seed) : random_(seed) {}

  // Chooses new random weights, so that some actions become frequent and others rare.
  void change_weights() {
    std::array<double, 6> weights{};
    for (double& weight : weights) weight = std::array{0.01, 1.0, 4.0}.at(random_() % 3);
    weights_ = std::discrete_distribution<int>(weights.begin(), weights.end());
  }
  // Performs one random action.
  void step() {
    switch (weights_(random_)) {
      case 0:
        return send_through_ring(1 + random_() % kSlice);
      case 1:
        return send_through_ring(1 + random_() % 200);  // short messages
      case 2:
        return send_direct();
      case 3:
        return deliver_data();
      case 4:
        return release_some();
      default:
        return deliver_credit();
    }
  }

  // Delivers all messages, takes all bytes and returns the credit, until nothing is in flight.
  void release_completed() {
    while (!data_.empty()) deliver_data();
    receiver_.lend(receiver_.held());
    receiver_.release(receiver_.lent());
    return_credit();
    while (!credits_.empty()) deliver_credit();
  }
  void check_that_there_is_room() const {
    EXPECT_TRUE(sender_.may_send());
    if (!behind_direct_) {
      EXPECT_GT(sender_.room(), kRingBytes - kCreditBytes)
          << "less than one credit's bytes may be missing";
    }
    EXPECT_GE(sender_.room(), kCreditBytes);
    EXPECT_EQ(receiver_.held(), 0U);
    EXPECT_EQ(receiver_.released(), sender_.sent());
  }
  void check() {
    was_full_ = was_full_ || sender_.room() == 0;
    had_no_message_ = had_no_message_ || !sender_.may_send();
    EXPECT_LE(bytes_in_flight_ + receiver_.held(), kRingBytes) << "the ring overflows";
    EXPECT_LE(sender_.room(), kRingBytes);
    EXPECT_LE(credits_.size(), kMaxCredits);
    EXPECT_LE(data_.size(), kMaxMessages) << "there are more messages than receive requests";
    EXPECT_LE(receiver_.lent(), receiver_.held());
  }
  // Returns true if the ring has been full at least once, and the limit on messages has also been
  // reached. Otherwise the test proves nothing.
  [[nodiscard]] bool reached_both_ends() const { return was_full_ && had_no_message_; }

 private:
  void send_through_ring(std::size_t bytes) {
    bytes = std::min(bytes, sender_.room());
    if (bytes == 0 || !sender_.may_send()) return;
    sender_.send_through_ring(bytes);
    behind_direct_ = behind_direct_ && sender_.sent() < direct_at_ + kCreditBytes;
    bytes_in_flight_ += bytes;
    data_.push_back(bytes);
  }
  void send_direct() {
    if (!sender_.may_send()) return;
    sender_.send_direct();
    direct_at_ = sender_.sent();
    behind_direct_ = true;
    data_.push_back(0);
  }
  void deliver_data() {
    if (data_.empty()) return;
    EXPECT_TRUE(receiver_.arrive(data_.front()))
        << "the receiver must accept what the sender may send";
    bytes_in_flight_ -= data_.front();
    data_.pop_front();
    maybe_return_credit();
  }
  void release_some() {
    receiver_.lend(random_() % (receiver_.held() + 1));
    const std::size_t lent = receiver_.lent();
    const std::size_t count = random_() % (kRingBytes + 1);
    EXPECT_EQ(receiver_.release(count), std::min(count, lent));
    maybe_return_credit();
  }
  void return_credit() {
    if (receiver_.credit_due()) credits_.push_back(receiver_.take_credit());
    EXPECT_FALSE(receiver_.credit_due());
  }
  // Returns a credit three times out of four, like an end that is sometimes out of send requests.
  void maybe_return_credit() {
    if (random_() % 4 > 0) return_credit();
  }
  void deliver_credit() {
    if (credits_.empty()) return;
    EXPECT_TRUE(sender_.credit(credits_.front()));
    credits_.pop_front();
  }

  std::mt19937_64 random_;
  std::discrete_distribution<int> weights_;
  SendWindow sender_;
  ReceiveWindow receiver_;
  std::deque<std::size_t> data_;  // ring bytes of each message in flight; 0 for a direct write
  std::deque<Immediate> credits_;
  std::size_t bytes_in_flight_ = 0;
  std::uint64_t direct_at_ = 0;  // sender_.sent() at the last direct write
  bool behind_direct_ = false;   // less than kCreditBytes were sent through the ring since then
  bool was_full_ = false;
  bool had_no_message_ = false;
};

TEST(Windows, NeverOverflowOrDeadlock) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(testing::Message() << "HCCL_TEST_SEED=" << seed);
  Traffic traffic(seed);
  for (int round = 0; round < scaled(400) && !testing::Test::HasFailure(); ++round) {
    traffic.change_weights();
    for (int i = 0; i < 1000 && !testing::Test::HasFailure(); ++i) {
      traffic.step();
      traffic.check();
    }
    traffic.release_completed();
    traffic.check();
    traffic.check_that_there_is_room();
  }
  EXPECT_TRUE(traffic.reached_both_ends());
}

// Random traffic rarely returns kMaxCredits credits before the sender reads one.
TEST(Windows, AnswerFullWindowWithFewCredits) {
  SendWindow sender;
  ReceiveWindow receiver;
  std::deque<Immediate> credits;
  const auto return_credit = [&] {
    if (receiver.credit_due()) credits.push_back(receiver.take_credit());
  };
  while (sender.room() > 0) {
    sender.send_through_ring(kCreditBytes);
    ASSERT_TRUE(receiver.arrive(kCreditBytes));
    receiver.lend(kCreditBytes);
    ASSERT_EQ(receiver.release(kCreditBytes), kCreditBytes);
    return_credit();
  }
  while (sender.may_send()) {
    sender.send_direct();
    ASSERT_TRUE(receiver.arrive(0));
    return_credit();
  }
  EXPECT_GE(credits.size(), kMaxCredits - 1);
  EXPECT_LE(credits.size(), kMaxCredits);
  for (const Immediate& credit : credits) EXPECT_TRUE(sender.credit(credit));
  EXPECT_EQ(sender.room(), kRunAhead);
}

TEST(SendWindow, LimitsRingBytesBehindDirectWrite) {
  SendWindow window;
  window.send_through_ring(1000);
  window.send_direct();
  EXPECT_EQ(window.room(), kRunAhead);
  window.send_through_ring(kCreditBytes - 1);
  EXPECT_GE(window.room(), kViewBytes)
      << "the peer may have taken these bytes without returning a credit";
  window.send_through_ring(kRunAhead - kCreditBytes);
  EXPECT_EQ(window.room(), 1U);
  EXPECT_TRUE(window.credit({Kind::credit, 1000, 1}));
  EXPECT_EQ(window.room(), 1U) << "the credit is for earlier bytes";
  EXPECT_TRUE(window.credit({Kind::credit, 1, 1}));
  EXPECT_EQ(window.room(), kRingBytes - kRunAhead + 2);
  window.send_through_ring(window.room());
  window.send_direct();
  EXPECT_EQ(window.room(), 0U) << "the ring has no more room";
}

TEST(SendWindow, IsFullWhenRingIsFull) {
  SendWindow window;
  EXPECT_EQ(window.room(), kRingBytes);
  window.send_through_ring(kRingBytes);
  EXPECT_EQ(window.room(), 0U);
  EXPECT_TRUE(window.may_send()) << "direct writes need no room in the ring";
  EXPECT_TRUE(window.credit({Kind::credit, 1000, 1}));
  EXPECT_EQ(window.room(), 1000U);
  EXPECT_EQ(window.sent(), kRingBytes);
}

TEST(SendWindow, IsFullAtMessageLimit) {
  SendWindow window;
  for (std::uint32_t i = 0; i < kMaxMessages; ++i) {
    EXPECT_TRUE(window.may_send());
    if (i % 2 == 0) {
      window.send_direct();
    } else {
      window.send_through_ring(1);
    }
  }
  EXPECT_FALSE(window.may_send());
  EXPECT_TRUE(window.credit({Kind::credit, 0, kCreditMessages}));
  EXPECT_TRUE(window.may_send());
}

TEST(SendWindow, RefusesCreditForUnsentBytes) {
  SendWindow window;
  EXPECT_FALSE(window.credit({Kind::credit, 1, 0}));
  EXPECT_FALSE(window.credit({Kind::credit, 0, 1}));
  window.send_through_ring(1000);
  EXPECT_FALSE(window.credit({Kind::credit, 1001, 1}));
  EXPECT_FALSE(window.credit({Kind::credit, 1000, 2}));
  EXPECT_EQ(window.room(), kRingBytes - 1000) << "a refused credit must change nothing";
  EXPECT_TRUE(window.credit({Kind::credit, 1000, 1}));
  EXPECT_FALSE(window.credit({Kind::credit, 1, 0})) << "this credit was returned before";
  EXPECT_EQ(window.room(), kRingBytes);
}

TEST(ReceiveWindow, RefusesMoreThanTheRingHolds) {
  ReceiveWindow window;
  EXPECT_FALSE(window.arrive(kRingBytes + 1));
  EXPECT_TRUE(window.arrive(kRingBytes - 1));
  EXPECT_FALSE(window.arrive(2));
  EXPECT_TRUE(window.arrive(1));
  EXPECT_EQ(window.held(), kRingBytes);
  window.lend(kRingBytes);
  EXPECT_EQ(window.release(kRingBytes), kRingBytes);
  EXPECT_FALSE(window.arrive(1)) << "the credit has not been returned yet";
  EXPECT_EQ(window.take_credit(), (Immediate{Kind::credit, kRingBytes, 2}));
  EXPECT_TRUE(window.arrive(kRingBytes));
}

TEST(ReceiveWindow, RefusesMoreMessagesThanReceiveRequests) {
  ReceiveWindow window;
  for (std::uint32_t i = 0; i < kMaxMessages; ++i) EXPECT_TRUE(window.arrive(i % 2));
  EXPECT_FALSE(window.arrive(0));
  EXPECT_FALSE(window.arrive(1));
  EXPECT_EQ(window.take_credit(), (Immediate{Kind::credit, 0, kMaxMessages}));
  EXPECT_TRUE(window.arrive(0));
}

TEST(ReceiveWindow, ReturnsCreditForManyBytesOrMessages) {
  ReceiveWindow bytes;
  EXPECT_FALSE(bytes.credit_due());
  ASSERT_TRUE(bytes.arrive(kCreditBytes));
  EXPECT_FALSE(bytes.credit_due()) << "nothing is released";
  bytes.lend(kCreditBytes);
  EXPECT_EQ(bytes.release(kCreditBytes - 1), kCreditBytes - 1);
  EXPECT_FALSE(bytes.credit_due());
  EXPECT_EQ(bytes.release(1), 1U);
  EXPECT_TRUE(bytes.credit_due() && !bytes.credit_can_wait());
  EXPECT_EQ(bytes.take_credit(), (Immediate{Kind::credit, kCreditBytes, 1}));
  EXPECT_FALSE(bytes.credit_due());
  ReceiveWindow messages;
  for (std::uint32_t i = 0; i < kCreditMessages; ++i) {
    EXPECT_FALSE(messages.credit_due());
    ASSERT_TRUE(messages.arrive(0));
  }
  EXPECT_TRUE(messages.credit_due()) << "messages are acknowledged on arrival";
  EXPECT_TRUE(messages.credit_can_wait()) << "the peer may send many more messages";
  for (std::uint32_t i = kCreditMessages; i < kMaxMessages / 2; ++i)
    ASSERT_TRUE(messages.arrive(0));
  EXPECT_FALSE(messages.credit_can_wait());
}

TEST(ReceiveWindow, ReleasesOnlyLentBytes) {
  ReceiveWindow window;
  ASSERT_TRUE(window.arrive(100));
  EXPECT_EQ(window.release(100), 0U);
  window.lend(60);
  window.lend(20);
  EXPECT_EQ(window.lent(), 60U) << "a smaller piece is part of the previous one";
  EXPECT_EQ(window.release(50), 50U);
  EXPECT_EQ(window.lent(), 10U);
  window.lend(30);
  EXPECT_EQ(window.lent(), 30U) << "counted from the first unreleased byte";
  EXPECT_EQ(window.release(1000), 30U);
  EXPECT_EQ(window.held(), 20U);
  EXPECT_EQ(window.released(), 80U);
}

}  // namespace
}  // namespace hccl::verbs
