// SPDX-License-Identifier: Apache-2.0
// Tests addresses, interfaces, and which user owns the other end of a connection.

#include "base/address.h"

#include "base/error.h"
#include "base/interfaces.h"
#include "bootstrap/comm_id.h"
#include "bootstrap/pending_connections.h"
#include "bootstrap/socket_owner.h"
#include "thrown.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hccl::bootstrap {
namespace {

// Tests the forms of HCCL_COMM_ID, and the choice of an interface.

std::string first_of(const std::string& comm_id) { return parse_comm_id(comm_id).at(0).to_text(); }

TEST(CommId, ParsesNumericAddresses) {
  EXPECT_EQ(first_of("127.0.0.1:5555"), "127.0.0.1:5555");
  EXPECT_EQ(first_of("10.1.2.3:1"), "10.1.2.3:1");
  EXPECT_EQ(first_of("[::1]:65535"), "[::1]:65535");
  EXPECT_EQ(first_of("::1:5555"), "[::1]:5555");
  EXPECT_EQ(first_of("[fd00::2]:80"), "[fd00::2]:80");
  EXPECT_EQ(parse_comm_id("127.0.0.1:5555").size(), 1U);
}

TEST(CommId, ResolvesNamesWithIPv4First) {
  const auto addresses = parse_comm_id("localhost:7777");
  EXPECT_EQ(addresses.at(0).to_text(), "127.0.0.1:7777");
  for (const Address& address : addresses) EXPECT_TRUE(address.is_loopback());
}

TEST(CommId, ErrorsNameVariable) {
  for (const char* wrong :
       {"", "127.0.0.1", ":5555", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:-1",
        "127.0.0.1:5x", "[]:5555", "no.such.host.invalid:5555"}) {
    try {
      static_cast<void>(parse_comm_id(wrong));
      ADD_FAILURE() << wrong;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), hcclInvalidArgument);
      EXPECT_EQ(std::string(error.what()).find("HCCL_COMM_ID="), 0U) << error.what();
    }
  }
}

TEST(Address, SurvivesSocketAddressConversion) {
  for (const char* form : {"192.0.2.7:5", "[2001:db8::7]:65535"}) {
    const Address address = parse_comm_id(form).at(0);
    EXPECT_EQ(from_socket_address(to_socket_address(address).get()), address);
    EXPECT_EQ(address.to_text(), form);
    EXPECT_FALSE(address.is_loopback());
    EXPECT_FALSE(address.is_link_local());
  }
  EXPECT_TRUE(parse_comm_id("[fe80::1]:5").at(0).is_link_local());
  EXPECT_FALSE(parse_comm_id("[::1]:5").at(0).same_host(parse_comm_id("127.0.0.1:5").at(0)));
  EXPECT_TRUE(parse_comm_id("127.0.0.1:6").at(0).same_host(parse_comm_id("127.0.0.1:5").at(0)));
}

Interface interface(const std::string& name, const std::string& address) {
  Address parsed = parse_comm_id(address + ":1").at(0);
  parsed.port = 0;
  return {name, parsed, name == "lo"};
}

std::string chosen(const std::vector<Interface>& interfaces, const std::string& prefixes) {
  const Interface choice = choose_interface(interfaces, prefixes);
  return choice.name + " " + choice.address.host_text();
}

TEST(InterfaceChoice, PrefersFirstOrdinaryInterface) {
  const std::vector<Interface> all{
      interface("lo", "127.0.0.1"),      interface("docker0", "172.17.0.1"),
      interface("virbr0", "192.0.2.99"), interface("veth12", "169.254.1.1"),
      interface("tunl0", "10.9.9.9"),    interface("eth0", "[fe80::1]"),
      interface("eth0", "[fd00::1]"),    interface("eth1", "192.0.2.1"),
      interface("ib0", "192.0.2.2")};
  EXPECT_EQ(chosen(all, ""), "eth1 192.0.2.1");
  EXPECT_EQ(chosen({all.begin(), all.begin() + 7}, ""), "eth0 fd00::1");
  // A veth device may connect a network namespace that serves as a host.
  EXPECT_EQ(chosen({interface("lo", "127.0.0.1"), interface("veth0", "10.1.0.1")}, ""),
            "veth0 10.1.0.1");
  // A link-local address needs a scope, which differs between hosts.
  EXPECT_EQ(chosen({all.begin(), all.begin() + 6}, ""), "lo 127.0.0.1");
}

TEST(InterfaceChoice, FollowsOrderOfPrefixes) {
  const std::vector<Interface> all{interface("lo", "127.0.0.1"), interface("eth0", "192.0.2.1"),
                                   interface("ib0", "192.0.2.2"),
                                   interface("docker0", "172.17.0.1")};
  EXPECT_EQ(chosen(all, "ib,eth"), "ib0 192.0.2.2");
  EXPECT_EQ(chosen(all, "en,eth"), "eth0 192.0.2.1");
  EXPECT_EQ(chosen(all, "lo"), "lo 127.0.0.1");
  EXPECT_EQ(chosen(all, "docker"), "docker0 172.17.0.1");
}

std::string refusal(const std::vector<Interface>& interfaces, const std::string& prefixes,
                    hcclResult_t code = hcclInvalidArgument) {
  return hccl::test::error_of(code, [&] { return choose_interface(interfaces, prefixes); });
}

TEST(InterfaceChoice, ListsInterfacesIfNoneMatches) {
  EXPECT_EQ(refusal({interface("eth0", "192.0.2.1")}, "ib,en"),
            "HCCL_SOCKET_IFNAME=\"ib,en\" matches no interface with a usable address; name "
            "one of: eth0 (192.0.2.1)");
}

// The loopback interface of a new network namespace is down. The error must say so. It must not
// mention HCCL_SOCKET_IFNAME, because hccl-perf sets that variable to "lo" if the user has not set
// it.
TEST(InterfaceChoice, ReportsLoopbackThatIsDown) {
  constexpr const char* kDown =
      "the loopback interface is down, as it is in a new network namespace; bring it up: "
      "ip link set lo up";
  EXPECT_EQ(refusal({}, "", hcclSystemError), kDown);
  EXPECT_EQ(refusal({}, "lo", hcclSystemError), kDown);
  EXPECT_EQ(refusal({interface("eth0", "192.0.2.1")}, "lo", hcclSystemError), kDown);
  EXPECT_NE(refusal({interface("eth0", "192.0.2.1")}, "ib"), kDown);
}

TEST(Address, OfThisMachineIsRecognised) {
  for (const Interface& interface : local_interfaces())
    EXPECT_TRUE(is_of_this_machine(interface.address)) << interface.address.to_text();
  EXPECT_TRUE(is_of_this_machine(parse_comm_id("127.9.8.7:1").at(0)));
  EXPECT_FALSE(is_of_this_machine(parse_comm_id("203.0.113.7:1").at(0)));
}

TEST(Connection, TextNamesInterfaceAndAddresses) {
  const Address local = parse_comm_id("127.0.0.1:1").at(0);
  const Address remote = parse_comm_id("127.0.0.1:2").at(0);
  EXPECT_EQ(connection_text(local, remote), "lo 127.0.0.1:1 to 127.0.0.1:2");
  const Address foreign = parse_comm_id("203.0.113.7:3").at(0);
  EXPECT_EQ(connection_text(foreign, remote), "203.0.113.7:3 to 127.0.0.1:2");
}

TEST(InterfaceChoice, FindsInterfaceOfThisMachine) {
  const Interface choice = choose_interface(local_interfaces(), "");
  EXPECT_FALSE(choice.name.empty());
  EXPECT_EQ(choice.address.port, 0);
}

// The kernel must report the user who owns the other end of a loopback connection.

TEST(SocketOwner, IsUserOfOtherEnd) {
  for (const char* form : {"127.0.0.1:1", "[::1]:1"}) {
    Address address = parse_comm_id(form).at(0);
    address.port = 0;
    const FileDescriptor listener = listen_on(address);
    ASSERT_TRUE(listener.valid());
    const SocketAddress where = to_socket_address(local_address(listener.get()));
    FileDescriptor client(socket(where.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(client.get(), where.get(), where.length), 0);
    const FileDescriptor server(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(server.valid());
    const SocketOwner owner = tcp_peer_owner(server.get());
    EXPECT_EQ(owner.knowledge, SocketOwner::Knowledge::known) << form;
    EXPECT_EQ(owner.user, geteuid()) << form;
    client.reset();
    EXPECT_EQ(tcp_peer_owner(server.get()).knowledge, SocketOwner::Knowledge::none) << form;
  }
}

}  // namespace
}  // namespace hccl::bootstrap
