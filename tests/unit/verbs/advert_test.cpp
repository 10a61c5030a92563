// SPDX-License-Identifier: Apache-2.0
// Tests SenderView and ReceiverView separately, then together while messages are delayed at random.
// The receiver must take the stream's bytes in order, from the ring or from the destination.
#include "verbs/advert.h"

#include "ranks.h"
#include "stream_model.h"

#include <limits>

#include <gtest/gtest.h>

namespace hccl::verbs {
namespace {

using hccl::test::scaled;
using hccl::test::test_seed;

TEST(SenderView, HasNoDirectRoomBeforeAdvert) {
  const SenderView sender;
  EXPECT_EQ(sender.direct_room(0), 0U);
  EXPECT_EQ(sender.direct_room(std::numeric_limits<std::uint64_t>::max()), 0U);
}

TEST(SenderView, HasDirectRoomForAdvertisedBytesOnly) {
  SenderView sender;
  sender.update({1000, 0x7000, 50, 9});
  EXPECT_EQ(sender.direct_room(999), 0U);
  EXPECT_EQ(sender.direct_room(1000), 50U);
  EXPECT_EQ(sender.direct_room(1049), 1U);
  EXPECT_EQ(sender.direct_room(1050), 0U);
  EXPECT_EQ(sender.address(1000), 0x7000U);
  EXPECT_EQ(sender.address(1049), 0x7031U);
  EXPECT_EQ(sender.key(), 9U);
  sender.update({1050, 0x9000, 10, 11});
  EXPECT_EQ(sender.direct_room(1049), 0U) << "the last advert counts";
  EXPECT_EQ(sender.address(1051), 0x9001U);
}

TEST(ReceiverView, TakesRingBytesUntilDirectBytesArrive) {
  ReceiverView receiver;
  EXPECT_FALSE(receiver.open());
  receiver.advertise(100);
  EXPECT_TRUE(receiver.open());
  EXPECT_EQ(receiver.ring_first(500, 30), 30U);
  EXPECT_EQ(receiver.ring_first(500, 130), 100U) << "bytes beyond the destination stay in the ring";
  receiver.take(30, false);
  EXPECT_TRUE(receiver.arrive(60, 540, 530));
  EXPECT_EQ(receiver.ring_first(530, 10), 10U) << "these bytes precede the direct ones";
  EXPECT_EQ(receiver.ring_first(530, 60), 10U) << "bytes behind the direct ones must wait";
  receiver.take(10, false);
  EXPECT_EQ(receiver.ring_first(540, 50), 0U);
  EXPECT_EQ(receiver.direct(), 60U);
  receiver.take(60, true);
  EXPECT_FALSE(receiver.open());
  EXPECT_EQ(receiver.direct(), 0U);
}

TEST(ReceiverView, RefusesUnadvertisedBytes) {
  ReceiverView receiver;
  EXPECT_FALSE(receiver.arrive(1, 0, 0)) << "no destination is advertised";
  receiver.advertise(100);
  EXPECT_TRUE(receiver.arrive(100, 0, 0));
  EXPECT_FALSE(receiver.arrive(1, 0, 0));
  ReceiverView partly;
  partly.advertise(100);
  partly.take(40, false);
  EXPECT_FALSE(partly.arrive(61, 40, 40)) << "40 bytes came through the ring";
  ReceiverView behind;
  behind.advertise(100);
  EXPECT_FALSE(behind.arrive(41, 60, 0)) << "the ring holds the first 60 bytes";
  ReceiverView closed;
  closed.advertise(100);
  closed.take(100, false);
  EXPECT_FALSE(closed.arrive(1, 100, 100));
  ReceiverView served;
  served.advertise(100);
  EXPECT_TRUE(served.arrive(100, 50, 50));
  served.take(100, true);
  EXPECT_FALSE(served.arrive(7, 57, 57)) << "the destination is full";
}

TEST(Adverts, KeepStreamOrderWhenDelayed) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(testing::Message() << "HCCL_TEST_SEED=" << seed);
  test::StreamModel stream(seed);
  for (int round = 0; round < scaled(400) && !testing::Test::HasFailure(); ++round) {
    stream.change_weights();
    for (int i = 0; i < 1000 && !testing::Test::HasFailure(); ++i) stream.step();
    if (round % 4 == 3) stream.release_completed();
  }
  EXPECT_GT(stream.seen().direct, 0);
  EXPECT_GT(stream.seen().too_late, 0);
  EXPECT_GT(stream.seen().partly, 0);
  EXPECT_GT(stream.seen().ring_next, 0);
}

}  // namespace
}  // namespace hccl::verbs
