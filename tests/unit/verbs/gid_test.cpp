// SPDX-License-Identifier: Apache-2.0
// Tests the bytes of GIDs, and which two can be connected.
#include "gids.h"

#include <gtest/gtest.h>

namespace hccl::verbs {
namespace {

using test::v4;
using test::v6;

TEST(Gid, MappedAddressesAreIpv4) {
  EXPECT_TRUE(is_ipv4(v4(10, 77, 0, 1)));
  EXPECT_FALSE(is_ipv4(v6(0xfd, 0, 1)));
  EXPECT_FALSE(is_ipv4(GidBytes{}));
  EXPECT_EQ(to_text(v4(10, 77, 0, 1)), "10.77.0.1");
  EXPECT_EQ(to_text(v6(0xfd, 0, 1)), "fd00::1");
  EXPECT_EQ(address_of(v4(10, 77, 0, 1)).bytes[0], 10);
  EXPECT_FALSE(address_of(v4(10, 77, 0, 1)).v6);
  EXPECT_TRUE(address_of(v6(0xfd, 0, 1)).v6);
}

TEST(Gid, LinkLocalIsAMatterOfIpv6) {
  EXPECT_TRUE(is_link_local(v6(0xfe, 0x80, 1)));
  EXPECT_TRUE(is_link_local(v6(0xfe, 0xbf, 1)));
  EXPECT_FALSE(is_link_local(v6(0xfe, 0xc0, 1)));
  EXPECT_FALSE(is_link_local(v4(169, 254, 0, 1))) << "as TCP has it";
  EXPECT_TRUE(is_zero(GidBytes{}));
  EXPECT_FALSE(is_zero(v6(0, 0, 1)));
}

TEST(Gid, KindsHaveNames) {
  EXPECT_STREQ(to_text(Gid::Kind::infiniband), "InfiniBand");
  EXPECT_STREQ(to_text(Gid::Kind::roce_v1), "RoCE v1");
  EXPECT_STREQ(to_text(Gid::Kind::roce_v2), "RoCE v2");
}

TEST(Gid, TheFamilyDecidesWhoCanTalk) {
  EXPECT_EQ(why_unreachable(v4(10, 0, 0, 1), v4(192, 168, 7, 1)), "") << "subnets are routed";
  EXPECT_EQ(why_unreachable(v6(0xfd, 0, 1), v6(0x20, 0x01, 1)), "");
  EXPECT_EQ(why_unreachable(v6(0xfe, 0x80, 1), v6(0xfe, 0x80, 2)), "");
  EXPECT_EQ(why_unreachable(v4(10, 0, 0, 1), v6(0xfd, 0, 2)),
            "its GID fd00::2 is IPv6 and this rank's, 10.0.0.1, is IPv4");
  EXPECT_EQ(why_unreachable(v6(0xfd, 0, 2), v4(10, 0, 0, 1)),
            "its GID 10.0.0.1 is IPv4 and this rank's, fd00::2, is IPv6");
}

TEST(Gid, LoopbackLeadsNowhereElse) {
  const GidBytes loopback = v4(127, 0, 0, 1);
  EXPECT_EQ(why_unreachable(loopback, loopback, true), "");
  EXPECT_EQ(why_unreachable(loopback, loopback, false),
            "between its GID 127.0.0.1 and this rank's, 127.0.0.1, loopback connects nothing");
  EXPECT_NE(why_unreachable(v4(10, 0, 0, 1), loopback, false), "");
  EXPECT_NE(why_unreachable(v6(0, 0, 1), v6(0xfd, 0, 1), false), "");
  EXPECT_EQ(why_unreachable(v4(10, 0, 0, 1), v4(10, 0, 0, 2), false), "");
}

}  // namespace
}  // namespace hccl::verbs
