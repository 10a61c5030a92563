// SPDX-License-Identifier: Apache-2.0
// A message's steps on both sides, one at a time.
#include "node/message_steps.h"

#include "engine_ranks.h"

#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

namespace hccl::node {
namespace {

class MessageStepsTest : public testing::Test {
 protected:
  PointToPoint send(std::uint64_t address, std::size_t count) {
    return numbered(sender_boxes_, Direction::send, 1, address, count);
  }
  PointToPoint receive(std::uint64_t address, std::size_t count) {
    return numbered(receiver_boxes_, Direction::receive, 0, address, count);
  }

  // Sends `count` values through all steps and compares them.
  void expect_delivered(std::size_t count) {
    const std::vector<float> values = random_values(count, 1);
    const std::uint64_t to = ranks_.upload(1, std::vector<float>(count, 0.0F));
    const PointToPoint out = send(ranks_.upload(0, values), count);
    const PointToPoint in = receive(to, count);
    MessageItem sent = sender_.make_item(out);
    MessageItem received = receiver_.make_item(in);
    EXPECT_FALSE(receiver_.ready(received)) << "nothing is offered";
    ASSERT_TRUE(sender_.ready(sent));
    sender_.advance(sent);
    EXPECT_EQ(sent.state, MessageItem::State::offered);
    EXPECT_FALSE(sender_.ready(sent)) << "nothing is taken";
    ASSERT_TRUE(receiver_.ready(received));
    receiver_.advance(received);
    EXPECT_EQ(received.state, MessageItem::State::done);
    ASSERT_TRUE(sender_.ready(sent));
    sender_.advance(sent);
    EXPECT_EQ(sent.state, MessageItem::State::done);
    EXPECT_TRUE(same_bits(ranks_.read(1, to, count), values));
  }

  EngineRanks ranks_{2};
  Mailboxes sender_boxes_{ranks_.segment(0)};
  Mailboxes receiver_boxes_{ranks_.segment(1)};
  MessageSteps sender_{ranks_.segment(0), sender_boxes_, 0, 256 << 10};
  MessageSteps receiver_{ranks_.segment(1), receiver_boxes_, 0, 256 << 10};

 private:
  static PointToPoint numbered(Mailboxes& boxes, Direction direction, int peer,
                               std::uint64_t address, std::size_t count) {
    PointToPoint call;
    call.direction = direction;
    call.type = hcclFloat32;
    call.peer = peer;
    call.count = count;
    call.address = address;
    boxes.number(call, 0);
    return call;
  }
};

TEST_F(MessageStepsTest, DeliverMessagesOfEveryLength) {
  for (const std::size_t count : {1u, 48u, 49u, 4'096u, 4'097u, 200'000u}) expect_delivered(count);
}

TEST_F(MessageStepsTest, ReuseTheEntriesOfTheMailbox) {
  for (std::uint64_t message = 0; message < 2 * Mailbox::kMessages; ++message) expect_delivered(7);
}

TEST_F(MessageStepsTest, WaitForAFreeEntry) {
  const std::uint64_t from = ranks_.upload(0, {1.0F});
  for (std::uint64_t message = 0; message < Mailbox::kMessages; ++message) {
    const PointToPoint out = send(from, 1);
    MessageItem sent = sender_.make_item(out);
    ASSERT_TRUE(sender_.ready(sent));
    sender_.advance(sent);
  }
  const PointToPoint out = send(from, 1);
  MessageItem sent = sender_.make_item(out);
  EXPECT_FALSE(sender_.ready(sent));
  const PointToPoint in = receive(ranks_.upload(1, {0.0F}), 1);
  MessageItem received = receiver_.make_item(in);
  receiver_.advance(received);
  EXPECT_TRUE(sender_.ready(sent));
}

TEST_F(MessageStepsTest, FailTheCommunicatorIfTheCallsDiffer) {
  const PointToPoint out = send(ranks_.upload(0, {1.0F, 2.0F}), 2);
  const PointToPoint in = receive(ranks_.upload(1, {5.0F}), 1);
  MessageItem sent = sender_.make_item(out);
  MessageItem received = receiver_.make_item(in);
  sender_.advance(sent);
  EXPECT_THROW(receiver_.advance(received), Error);
  EXPECT_EQ(
      ranks_.segment(0).fault().text(),
      "message 0: rank 0 send(2, float) to rank 1 but rank 1 recv(1, float) from rank 0; both "
      "must pass the same count and type");
  EXPECT_EQ(ranks_.read(1, in.address, 1), std::vector<float>{5.0F});
}

}  // namespace
}  // namespace hccl::node
