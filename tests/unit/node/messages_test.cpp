// SPDX-License-Identifier: Apache-2.0
// Tests messages within a node: their mailboxes, and the steps that each side takes.

#include "engine_ranks.h"
#include "node/mailboxes.h"
#include "node/message_steps.h"
#include "node/staging_layout.h"
#include "node/staging_ring.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace hccl::node {
namespace {

// Tests mailboxes: the numbers of sends and receives, and the search for messages without a
// receive.

PointToPoint call_with(int peer, Direction direction) {
  return {.direction = direction, .type = hcclFloat32, .peer = peer, .count = 3};
}

TEST(Mailboxes, NumberCallsByPeerAndDirection) {
  EngineRanks ranks(3);
  Mailboxes mailboxes(ranks.segment(0));
  for (std::uint64_t number = 0; number < 3; ++number) {
    for (const int peer : {1, 2}) {
      for (const Direction direction : {Direction::send, Direction::receive}) {
        PointToPoint call = call_with(peer, direction);
        mailboxes.number(call, 0);
        EXPECT_EQ(call.number, number);
      }
    }
  }
}

TEST(Mailboxes, AnnounceCallsToPeer) {
  EngineRanks ranks(2);
  Mailboxes mine(ranks.segment(0));
  const Mailboxes theirs(ranks.segment(1));
  PointToPoint call = call_with(1, Direction::send);
  mine.number(call, 5);
  QueuedCalls& seen = theirs.of(call_with(0, Direction::receive)).sends;
  EXPECT_EQ(seen.count, 1);
  EXPECT_EQ(seen.entry(0), queued_on(0, 5));
}

TEST(Mailboxes, FindOffersRoundRobin) {
  EngineRanks ranks(3);
  Mailboxes mailboxes(ranks.segment(0));
  EXPECT_FALSE(mailboxes.find_offer(0));
  for (const int source : {1, 2}) {
    Message& message = mailboxes.of(call_with(source, Direction::receive)).message(0);
    message.type = hcclFloat32;
    message.count = static_cast<std::uint64_t>(source);
    message.offered = 1;
  }
  EXPECT_EQ(mailboxes.find_offer(0)->source, 1);
  EXPECT_EQ(mailboxes.find_offer(2)->source, 2);
  EXPECT_EQ(mailboxes.find_offer(2)->bytes, 8);
  PointToPoint receive = call_with(1, Direction::receive);
  mailboxes.number(receive, 0);
  EXPECT_EQ(mailboxes.find_offer(0)->source, 2) << "the first message has a matching receive";
}

TEST(Mailboxes, PackCallsIntoOneWord) {
  PointToPoint call = call_with(63, Direction::receive);
  EXPECT_EQ(describe(unpack_call(pack_call(call))), describe(call));
  EXPECT_NE(pack_call(call), 0) << "zero means no call";
  call.count = 1ull << 40;
  EXPECT_EQ(unpack_call(pack_call(call)).count, 0xFFFFFFFF);
}

// Tests the steps of sender and receiver, one at a time.

enum class Placement : std::uint8_t { device, host };

class MessageStepsTest : public testing::Test {
 protected:
  explicit MessageStepsTest(CoreCount cores = {2, false}, DirectReads reads = DirectReads::always)
      : ranks_(2, 0, {}, cores, EngineRanks::kAllRanks, reads) {}

  static std::uint64_t address_of(std::vector<float>& values) {
    return reinterpret_cast<std::uint64_t>(values.data());
  }
  PointToPoint send(std::uint64_t address, std::size_t count) {
    return numbered(sender_boxes_, Direction::send, 1, address, count);
  }
  PointToPoint receive(std::uint64_t address, std::size_t count) {
    return numbered(receiver_boxes_, Direction::receive, 0, address, count);
  }

  // Takes a message of `count` values through all steps. Expects that the values arrive unchanged.
  // A message that comes in pieces takes several steps on each side.
  void expect_delivered(std::size_t count, Placement from = Placement::device,
                        Placement to = Placement::device) {
    std::vector<float> values = random_values(count, 1);
    std::vector<float> result(count, 0.0F);
    const bool host_result = to == Placement::host;
    const PointToPoint out =
        send(from == Placement::host ? address_of(values) : ranks_.upload(0, values), count);
    const PointToPoint in =
        receive(host_result ? address_of(result) : ranks_.upload(1, result), count);
    MessageItem sent = sender_.make_item(out);
    MessageItem received = receiver_.make_item(in);
    EXPECT_FALSE(receiver_.ready(received)) << "no message is offered yet";
    ASSERT_TRUE(sender_.ready(sent));
    sender_.advance(sent);
    EXPECT_EQ(sent.state, MessageItem::State::offered);
    EXPECT_FALSE(sender_.ready(sent)) << "the message has not been taken yet";
    ASSERT_TRUE(receiver_.ready(received));
    receiver_.advance(received);
    while (received.state == MessageItem::State::draining) {
      while (sender_.ready(sent)) sender_.advance(sent);
      ASSERT_TRUE(receiver_.ready(received));
      receiver_.advance(received);
    }
    EXPECT_EQ(received.state, MessageItem::State::done);
    ASSERT_TRUE(sender_.ready(sent));
    sender_.advance(sent);
    EXPECT_EQ(sent.state, MessageItem::State::done);
    EXPECT_TRUE(same_bits(host_result ? result : ranks_.read(1, in.address, count), values));
  }

  EngineRanks ranks_;
  Mailboxes sender_boxes_{ranks_.segment(0)};
  Mailboxes receiver_boxes_{ranks_.segment(1)};
  StagingRing ring_{kMessageRingBytes, StagingRing::Reuse::late};
  StagingRing unused_ring_{kMessageRingBytes, StagingRing::Reuse::late};
  MessageSteps sender_{ranks_.segment(0), sender_boxes_, ranks_.arena(0).allocate(kStagingBytes),
                       ring_, 256 << 10};
  MessageSteps receiver_{ranks_.segment(1), receiver_boxes_, 0, unused_ring_, 256 << 10};

 private:
  static PointToPoint numbered(Mailboxes& boxes, Direction direction, int peer,
                               std::uint64_t address, std::size_t count) {
    PointToPoint call{.direction = direction,
                      .type = hcclFloat32,
                      .peer = peer,
                      .count = count,
                      .address = address};
    boxes.number(call, 0);
    return call;
  }
};

TEST_F(MessageStepsTest, DeliverMessagesOfEveryLength) {
  for (const std::size_t count : {1u, 48u, 49u, 4'096u, 4'097u, 200'000u}) expect_delivered(count);
}

class StagedMessagesTest : public MessageStepsTest {
 protected:
  StagedMessagesTest() : MessageStepsTest({2, false}, DirectReads::never) {}
};

class RarelyReadMessagesTest : public MessageStepsTest {
 protected:
  RarelyReadMessagesTest() : MessageStepsTest({2, true}, DirectReads::rarely) {}
};

// Message lengths below and above each limit: the payload of a mailbox entry, the longest message
// in the message ring, and the part of a staging buffer for messages in pieces.
constexpr std::array<std::size_t, 8> kCounts{1, 48, 49, 4'097, 65'536, 65'537, 300'000, 700'001};

TEST_F(MessageStepsTest, DeliverMessagesBetweenHostAndDevice) {
  for (const std::size_t count : kCounts) {
    expect_delivered(count, Placement::host, Placement::host);
    expect_delivered(count, Placement::host, Placement::device);
    expect_delivered(count, Placement::device, Placement::host);
  }
}

TEST_F(StagedMessagesTest, DeliverMessagesBetweenHostAndDevice) {
  for (const std::size_t count : kCounts) {
    expect_delivered(count, Placement::host, Placement::host);
    expect_delivered(count, Placement::host, Placement::device);
    expect_delivered(count, Placement::device, Placement::host);
  }
}

// From the first message, the receiver learns that it can read the sender's memory. It must then
// copy the second message directly from the sender's process.
TEST_F(MessageStepsTest, CopyLongMessagesFromTheSendersProcess) {
  if (!can_read_processes()) GTEST_SKIP() << "needs process_vm_readv: the system refuses it";
  constexpr std::size_t kCount = 50'000;
  expect_delivered(kCount, Placement::host, Placement::host);
  std::vector<float> values = random_values(kCount, 2);
  std::vector<float> result(kCount);
  const PointToPoint out = send(address_of(values), kCount);
  const PointToPoint in = receive(address_of(result), kCount);
  MessageItem sent = sender_.make_item(out);
  MessageItem received = receiver_.make_item(in);
  sender_.advance(sent);
  EXPECT_FALSE(sent.in_ring);
  EXPECT_TRUE(receiver_.take(received));
  EXPECT_TRUE(same_bits(result, values));
}

// Even if only one message is in the ring at any time, successive messages use the whole ring if it
// is reused late.
TEST_F(RarelyReadMessagesTest, UseTheWholeRing) {
  constexpr std::size_t kCount = 60'000;
  std::vector<float> values = random_values(kCount, 3);
  std::vector<float> result(kCount);
  std::uint64_t last = 0;
  std::size_t wraps = 0;
  for (int message = 0; message < 30; ++message) {
    std::ranges::fill(result, 0.0F);
    const PointToPoint out = send(address_of(values), kCount);
    const PointToPoint in = receive(address_of(result), kCount);
    MessageItem sent = sender_.make_item(out);
    MessageItem received = receiver_.make_item(in);
    sender_.advance(sent);
    ASSERT_TRUE(sent.in_ring) << "message " << message;
    EXPECT_TRUE(message == 0 || *sent.in_ring != last) << "message " << message;
    if (*sent.in_ring < last) ++wraps;
    last = *sent.in_ring;
    ASSERT_TRUE(receiver_.take(received));
    sender_.advance(sent);
    EXPECT_TRUE(same_bits(result, values)) << "message " << message;
  }
  EXPECT_EQ(wraps, 3U) << "the ring holds eight of these messages";
}

TEST_F(RarelyReadMessagesTest, DeliverMessagesBetweenHostAndDevice) {
  for (const std::size_t count : kCounts) {
    expect_delivered(count, Placement::host, Placement::host);
    expect_delivered(count, Placement::host, Placement::device);
    expect_delivered(count, Placement::device, Placement::host);
  }
}

// The receiver copies a message from the sender's process. Before the sender has noticed, a later
// message reuses the mailbox entry. The sender must not mistake the later message's data for a
// request for pieces.
TEST_F(MessageStepsTest, LeaveTheNextMessageOfAnEntryAlone) {
  if (!can_read_processes()) GTEST_SKIP() << "needs process_vm_readv: the system refuses it";
  std::vector<float> first(100'000, 1.0F);
  std::vector<float> others(8, 0.0F);  // zeros look like the progress of a message in pieces
  std::vector<float> received(first.size());
  std::vector<PointToPoint> out, in;
  for (std::size_t message = 0; message <= Mailbox::kMessages; ++message) {
    std::vector<float>& from = message == 0 ? first : others;
    out.push_back(send(address_of(from), from.size()));
    in.push_back(receive(address_of(received), from.size()));
  }
  MessageItem unnoticed = sender_.make_item(out[0]);
  for (std::size_t message = 0; message <= Mailbox::kMessages; ++message) {
    MessageItem sent = sender_.make_item(out[message]);
    ASSERT_TRUE(sender_.ready(sent));
    sender_.advance(sent);
    if (message == 0) unnoticed = sent;
    if (message == Mailbox::kMessages) break;
    MessageItem item = receiver_.make_item(in[message]);
    ASSERT_TRUE(receiver_.take(item));
  }
  ASSERT_TRUE(sender_.ready(unnoticed));
  sender_.advance(unnoticed);
  EXPECT_EQ(unnoticed.state, MessageItem::State::done);
  MessageItem last = receiver_.make_item(in.back());
  ASSERT_TRUE(receiver_.take(last));
  received.resize(others.size());
  EXPECT_TRUE(same_bits(received, others));
}

// The first messages fill the ring. The others come in pieces, so no message waits until the
// receiver takes an earlier one.
TEST_F(StagedMessagesTest, DeliverMessagesInAnyOrderIfRingIsFull) {
  constexpr std::size_t kCount = 50'000;
  constexpr std::size_t kMessages = 12;
  std::vector<std::vector<float>> values, results(kMessages, std::vector<float>(kCount));
  std::vector<PointToPoint> out, in;
  for (std::size_t message = 0; message < kMessages; ++message) {
    values.push_back(random_values(kCount, static_cast<unsigned>(message)));
    out.push_back(send(address_of(values.back()), kCount));
    in.push_back(receive(address_of(results[message]), kCount));
  }
  std::vector<MessageItem> sent, received;
  for (std::size_t message = 0; message < kMessages; ++message) {
    sent.push_back(sender_.make_item(out[message]));
    received.push_back(receiver_.make_item(in[message]));
    sender_.advance(sent.back());
  }
  EXPECT_TRUE(sent.front().in_ring) << "the first message has not gone to the ring";
  EXPECT_FALSE(sent.back().in_ring) << "the ring is not full";
  for (std::size_t left = kMessages; left-- > 0;) {
    MessageItem& item = received[left];
    while (item.state != MessageItem::State::done) {
      ASSERT_TRUE(receiver_.ready(item));
      receiver_.advance(item);
      while (sent[left].state != MessageItem::State::done && sender_.ready(sent[left]))
        sender_.advance(sent[left]);
    }
    EXPECT_EQ(sent[left].state, MessageItem::State::done);
    EXPECT_TRUE(same_bits(results[left], values[left])) << "message " << left;
  }
}

TEST_F(MessageStepsTest, RefuseHostMemoryThatCannotBeRead) {
  constexpr std::size_t kLength = 1 << 20;
  void* const sealed = mmap(nullptr, kLength, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(sealed, MAP_FAILED);
  for (const std::size_t count : {2u, 1'000u, 200'000u}) {
    const PointToPoint out = send(reinterpret_cast<std::uint64_t>(sealed), count);
    MessageItem sent = sender_.make_item(out);
    EXPECT_FALSE(sender_.can_begin_early(sent));
    EXPECT_THROW(sender_.advance(sent), Error);
  }
  munmap(sealed, kLength);
}

TEST_F(MessageStepsTest, ReuseEntriesOfMailbox) {
  for (std::uint64_t message = 0; message < 2 * Mailbox::kMessages; ++message) expect_delivered(7);
}

TEST_F(MessageStepsTest, WaitForFreeEntry) {
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

TEST_F(MessageStepsTest, FailCommunicatorIfCallsDiffer) {
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
