// SPDX-License-Identifier: Apache-2.0
// Tests which addresses are offered and tried, and the texts that explain the choice.
#include "base/error.h"
#include "tcp/addresses.h"

#include <gtest/gtest.h>

namespace hccl::tcp {
namespace {

Interface v4(const char* name, std::array<std::uint8_t, 4> bytes, int prefix = 24) {
  Interface entry;
  entry.name = name;
  std::copy(bytes.begin(), bytes.end(), entry.address.bytes.begin());
  entry.prefix_length = prefix;
  entry.loopback = bytes[0] == 127;
  return entry;
}

Interface v6(const char* name, std::uint8_t first, std::uint8_t second) {
  Interface entry;
  entry.name = name;
  entry.address.v6 = true;
  entry.address.bytes = {first, second};
  entry.address.bytes[15] = 9;
  entry.prefix_length = 64;
  return entry;
}

std::vector<std::string> names(const std::vector<Interface>& interfaces) {
  std::vector<std::string> result;
  result.reserve(interfaces.size());
  for (const Interface& entry : interfaces) result.push_back(entry.name);
  return result;
}

const std::vector<Interface> kMachine{v4("lo", {127, 0, 0, 1}, 8),    v6("eth0", 0x20, 0x01),
                                      v4("docker0", {172, 17, 0, 1}), v4("eth0", {10, 0, 0, 2}),
                                      v6("eth1", 0xfe, 0x80),         v4("eth1", {10, 1, 0, 2})};

TEST(TcpAddresses, OfferReachableAddressesByDefault) {
  const AddressChoice choice = choose_addresses(kMachine, "");
  EXPECT_EQ(names(choice.offered), (std::vector<std::string>{"eth0", "eth1", "eth0"}));
  EXPECT_TRUE(choice.offered[2].address.v6);
  const std::string bridge =
      "a bridge or tunnel for containers or VMs; to use it, name it in HCCL_SOCKET_IFNAME";
  const std::vector<std::string> remarks{
      "lo 127.0.0.1 is not offered: other hosts cannot reach it",
      "docker0 172.17.0.1 is not offered: " + bridge,
      "eth0 10.0.0.2 is offered",
      "eth1 10.1.0.2 is offered",
      "eth0 2001::9 is offered",
      "eth1 fe80::9 is not offered: link-local addresses cannot be used without a scope"};
  EXPECT_EQ(choice.remarks, remarks);
}

TEST(TcpAddresses, OfferOnlyNamedInterfaces) {
  EXPECT_EQ(names(choose_addresses(kMachine, "docker,lo").offered),
            (std::vector<std::string>{"lo", "docker0"}));
  EXPECT_EQ(choose_addresses(kMachine, "eth1").remarks[0],
            "lo 127.0.0.1 is not offered: HCCL_SOCKET_IFNAME=eth1 does not name it");
  EXPECT_THROW(static_cast<void>(choose_addresses(kMachine, "ib")), Error);
  EXPECT_THROW(static_cast<void>(choose_addresses({}, "")), Error);
}

TEST(TcpAddresses, OfferLoopbackAsLastResort) {
  EXPECT_EQ(names(choose_addresses({kMachine[0], kMachine[2]}, "").offered),
            (std::vector<std::string>{"lo"}));
}

TcpAddresses addresses_of(std::uint64_t network, const std::vector<Interface>& interfaces) {
  TcpAddresses published;
  published.network = network;
  for (const Interface& entry : interfaces) {
    published.addresses.push_back({entry.address, entry.prefix_length});
    published.addresses.back().address.port = 4000;
  }
  return published;
}

TEST(TcpAddresses, SurviveEncoding) {
  std::vector<Interface> many(kMaxOffered, kMachine[1]);
  for (const TcpAddresses& published : {addresses_of(1, kMachine), addresses_of(2, many)}) {
    const Bytes bytes = serialize(published);
    EXPECT_LE(bytes.size(), 256U);
    EXPECT_EQ(parse_tcp_addresses(bytes), published);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(parse_tcp_addresses(std::span(bytes).first(size)).has_value());
    }
  }
}

TEST(TcpAddresses, TrySameSubnetFirst) {
  const TcpAddresses ours = addresses_of(1, {v4("eth0", {10, 1, 0, 7})});
  const auto usable = usable_addresses(ours, addresses_of(2, kMachine));
  ASSERT_EQ(usable.size(), 3U);  // without loopback, and without IPv6, which this rank lacks
  EXPECT_EQ(usable[0].to_text(), "10.1.0.2:4000");
  EXPECT_EQ(usable[1].to_text(), "172.17.0.1:4000");
}

TEST(TcpAddresses, LoopbackConnectsOnlyWithinHost) {
  const TcpAddresses theirs = addresses_of(2, {kMachine[0]});
  EXPECT_TRUE(usable_addresses(addresses_of(1, {kMachine[0]}), theirs).empty());
  EXPECT_EQ(usable_addresses(addresses_of(2, {kMachine[0]}), theirs).size(), 1U);
}

}  // namespace
}  // namespace hccl::tcp
