// SPDX-License-Identifier: Apache-2.0
// What a rank publishes survives the way, and nothing else is taken for it.
#include "verbs/offer.h"

#include "gids.h"
#include "ranks.h"
#include "transport/transport.h"

#include <random>

#include <gtest/gtest.h>

namespace hccl::verbs {
namespace {

using hccl::test::test_seed;

Offer offer() { return {0x0123456789abcdef, test::v4(10, 77, 0, 2), 40001}; }

TEST(Offer, Travels) {
  EXPECT_EQ(parse_offer(serialize(offer())), offer());
  const Offer six{1, test::v6(0xfd, 0x00, 7), 65535};
  EXPECT_EQ(parse_offer(serialize(six)), six);
  EXPECT_LE(serialize(offer()).size(), transport::kMostAddressBytes);
}

TEST(Offer, CutOrExtendedItIsNone) {
  const Bytes whole = serialize(offer());
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(parse_offer(std::span(whole).first(size))) << size;
  Bytes longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(parse_offer(longer));
}

TEST(Offer, OfAnotherFormatItIsNone) {
  for (int format = 0; format < 256; ++format) {
    Bytes other = serialize(offer());
    if (other[0] == static_cast<std::byte>(format)) continue;
    other[0] = static_cast<std::byte>(format);
    EXPECT_FALSE(parse_offer(other)) << format;
  }
}

TEST(Offer, NobodyListensOnPortZero) {
  Offer none = offer();
  none.tcp_port = 0;
  EXPECT_FALSE(parse_offer(serialize(none)));
  none.tcp_port = 1;
  EXPECT_TRUE(parse_offer(serialize(none)));
}

TEST(Offer, GarbageIsReadAsItIsOrNotAtAll) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(testing::Message() << "HCCL_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  const Bytes known = serialize(offer());
  for (int i = 0; i < 20'000; ++i) {
    Bytes bytes(random() % (known.size() + 2));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    if (!bytes.empty() && random() % 2 == 0) bytes[0] = known[0];
    const auto read = parse_offer(bytes);
    EXPECT_TRUE(!read || serialize(*read) == bytes);
  }
}

TEST(Offer, ThePortIsMetAtItsOwnAddress) {
  EXPECT_EQ(meeting_point(offer()).to_text(), "10.77.0.2:40001");
  const Offer six{1, test::v6(0xfd, 0x00, 7), 80};
  EXPECT_EQ(meeting_point(six).to_text(), "[fd00::7]:80");
}

}  // namespace
}  // namespace hccl::verbs
