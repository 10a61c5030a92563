// SPDX-License-Identifier: Apache-2.0
// Numbers of sends and receives, and offers that no receive expects.
#include "node/mailboxes.h"

#include "engine_ranks.h"

#include <gtest/gtest.h>

namespace hccl::node {
namespace {

PointToPoint call_with(int peer, Direction direction) {
  PointToPoint call;
  call.direction = direction;
  call.type = hcclFloat32;
  call.peer = peer;
  call.count = 3;
  return call;
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

TEST(Mailboxes, AnnounceCallsToThePeer) {
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
  EXPECT_EQ(mailboxes.find_offer(0)->source, 2) << "the first message has its receive";
}

TEST(Mailboxes, PackCallsIntoAWord) {
  PointToPoint call = call_with(63, Direction::receive);
  EXPECT_EQ(describe(unpack_call(pack_call(call))), describe(call));
  EXPECT_NE(pack_call(call), 0) << "no call";
  call.count = 1ull << 40;
  EXPECT_EQ(unpack_call(pack_call(call)).count, 0xFFFFFFFF);
}

}  // namespace
}  // namespace hccl::node
