// SPDX-License-Identifier: Apache-2.0
// Both ends' views of invitations, first one by one and then together: whatever comes late, the
// receiver takes the bytes of the stream in their order, each from where it went.
#include "verbs/invitation.h"

#include "ranks.h"
#include "stream_model.h"

#include <limits>

#include <gtest/gtest.h>

namespace hccl::verbs {
namespace {

using hccl::test::scaled;
using hccl::test::test_seed;

TEST(Guest, IsWelcomeNowhereBeforeItIsInvited) {
  const Guest guest;
  EXPECT_EQ(guest.welcome(0), 0U);
  EXPECT_EQ(guest.welcome(std::numeric_limits<std::uint64_t>::max()), 0U);
}

TEST(Guest, IsWelcomeWithTheInvitedBytesAlone) {
  Guest guest;
  guest.invite({1000, 0x7000, 50, 9});
  EXPECT_EQ(guest.welcome(999), 0U);
  EXPECT_EQ(guest.welcome(1000), 50U);
  EXPECT_EQ(guest.welcome(1049), 1U);
  EXPECT_EQ(guest.welcome(1050), 0U);
  EXPECT_EQ(guest.address(1000), 0x7000U);
  EXPECT_EQ(guest.address(1049), 0x7031U);
  EXPECT_EQ(guest.key(), 9U);
  guest.invite({1050, 0x9000, 10, 11});
  EXPECT_EQ(guest.welcome(1049), 0U) << "the last invitation counts";
  EXPECT_EQ(guest.address(1051), 0x9001U);
}

TEST(Host, TakesWhatTheRingHoldsUntilBytesHaveComeStraight) {
  Host host;
  EXPECT_FALSE(host.open());
  host.invite(100);
  EXPECT_TRUE(host.open());
  EXPECT_EQ(host.ring_first(500, 30), 30U);
  EXPECT_EQ(host.ring_first(500, 130), 100U) << "what comes behind is for later";
  host.take(30, false);
  EXPECT_TRUE(host.arrive(60, 540, 530));
  EXPECT_EQ(host.ring_first(530, 10), 10U) << "these came before";
  EXPECT_EQ(host.ring_first(530, 60), 10U) << "and those after";
  host.take(10, false);
  EXPECT_EQ(host.ring_first(540, 50), 0U);
  EXPECT_EQ(host.straight(), 60U);
  host.take(60, true);
  EXPECT_FALSE(host.open());
  EXPECT_EQ(host.straight(), 0U);
}

TEST(Host, RefusesWhatItHasNotInvited) {
  Host host;
  EXPECT_FALSE(host.arrive(1, 0, 0)) << "nobody is invited";
  host.invite(100);
  EXPECT_TRUE(host.arrive(100, 0, 0));
  EXPECT_FALSE(host.arrive(1, 0, 0));
  Host partly;
  partly.invite(100);
  partly.take(40, false);
  EXPECT_FALSE(partly.arrive(61, 40, 40)) << "the ring has served the rest";
  Host behind;
  behind.invite(100);
  EXPECT_FALSE(behind.arrive(41, 60, 0)) << "the ring holds the first of them";
  Host closed;
  closed.invite(100);
  closed.take(100, false);
  EXPECT_FALSE(closed.arrive(1, 100, 100));
  Host served;
  served.invite(100);
  EXPECT_TRUE(served.arrive(100, 50, 50));
  served.take(100, true);
  EXPECT_FALSE(served.arrive(7, 57, 57)) << "what the ring has brought since is none of it";
}

TEST(Invitations, KeepTheOrderOfTheStreamHoweverLateTheyCome) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(testing::Message() << "HCCL_TEST_SEED=" << seed);
  test::StreamModel stream(seed);
  for (int round = 0; round < scaled(400) && !testing::Test::HasFailure(); ++round) {
    stream.change_mood();
    for (int i = 0; i < 1000 && !testing::Test::HasFailure(); ++i) stream.step();
    if (round % 4 == 3) stream.settle();
  }
  EXPECT_GT(stream.seen().straight, 0);
  EXPECT_GT(stream.seen().too_late, 0);
  EXPECT_GT(stream.seen().partly, 0);
  EXPECT_GT(stream.seen().ring_next, 0);
}

}  // namespace
}  // namespace hccl::verbs
