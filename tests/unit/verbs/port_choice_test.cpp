// SPDX-License-Identifier: Apache-2.0
// Tests which ports and GIDs are chosen, in which order, and the texts that explain the choice.
#include "verbs/port_choice.h"

#include "base/error.h"
#include "samples.h"
#include "thrown.h"

#include <gtest/gtest.h>

namespace hccl::verbs {
namespace {

using hccl::test::error_of;
using test::interface_of;
using test::v4;
using test::v6;
using GidKind = Gid::Kind;
using Texts = std::vector<std::string>;

Port port_of(const char* device, int number, std::vector<Gid> gids) {
  Port port;
  port.device = device;
  port.number = number;
  port.state = "active";
  port.active = true;
  port.ethernet = true;
  port.mtu = 1024;
  port.gid_table_length = 16;
  port.gids = std::move(gids);
  return port;
}

Gid gid(int index, const GidBytes& bytes, const char* interface, GidKind kind = GidKind::roce_v2) {
  return {index, bytes, kind, interface};
}

// Returns a port's GID table as Linux fills it, with an entry for each address and version of RoCE.
std::vector<Gid> table(const GidBytes& address, const char* interface) {
  const GidBytes local = v6(0xfe, 0x80, address[15]);
  return {gid(0, local, interface, GidKind::roce_v1), gid(1, local, interface),
          gid(2, address, interface, GidKind::roce_v1), gid(3, address, interface)};
}

const std::vector<Interface> kInterfaces{
    interface_of("lo", v4(127, 0, 0, 1), true), interface_of("roce0", v4(10, 77, 0, 1)),
    interface_of("roce1", v4(10, 78, 0, 1)),    interface_of("roce0", v6(0xfd, 0, 1)),
    interface_of("docker0", v4(172, 17, 0, 1)), interface_of("roce2", v6(0xfd, 0, 2)),
    interface_of("roce0", v6(0xfe, 0x80, 1)),   interface_of("roce1", v6(0xfe, 0x80, 1))};

// Returns the device, port and GID index of each usable port, such as "rxe0:1/3".
Texts used(const PortChoice& choice) {
  Texts result;
  for (const UsablePort& port : choice.usable)
    result.push_back(port.device + ':' + std::to_string(port.number) + '/' +
                     std::to_string(port.gid.index));
  EXPECT_EQ(result.empty(), !choice.why_none.empty()) << choice.why_none;
  return result;
}

Texts used(const std::vector<Port>& ports, const PortRequest& request = {}) {
  return used(choose_ports(ports, request, kInterfaces));
}

PortRequest devices(const std::string& names) { return {names, std::nullopt, ""}; }
PortRequest index(int number) { return {"", number, ""}; }
PortRequest interfaces(const std::string& names) { return {"", std::nullopt, names}; }

std::string refusal(const std::vector<Port>& ports, const PortRequest& request) {
  return error_of(hcclInvalidArgument, [&] { return choose_ports(ports, request, kInterfaces); });
}

const Port kFirst = port_of("rxe0", 1, table(v4(10, 77, 0, 1), "roce0"));
const Port kSecond = port_of("rxe1", 1, table(v4(10, 78, 0, 1), "roce1"));

TEST(PortChoice, UsesIpv4GidOfPort) {
  const PortChoice choice = choose_ports({kFirst}, {}, kInterfaces);
  EXPECT_EQ(used(choice), Texts{"rxe0:1/3"});
  EXPECT_EQ(choice.usable[0].gid.bytes, v4(10, 77, 0, 1));
  EXPECT_EQ(choice.usable[0].gid.interface, "roce0");
  EXPECT_EQ(choice.usable[0].mtu, 1024U);
  EXPECT_EQ(choice.remarks,
            Texts{"rxe0 port 1: GID 0 (fe80::1) rejected: it is RoCE v1, not RoCE v2; GID 1 "
                  "(fe80::1) rejected: it is link-local, which is ambiguous without a scope; GID 2 "
                  "(10.77.0.1) rejected: it is RoCE v1, not RoCE v2; GID 3 (10.77.0.1, RoCE v2, "
                  "roce0) chosen"});
}

TEST(PortChoice, PrefersIpv4) {
  const Port port = port_of("rxe0", 1,
                            {gid(0, v6(0xfe, 0x80, 1), "roce0"), gid(1, v6(0xfd, 0, 1), "roce0"),
                             gid(2, v4(10, 77, 0, 1), "roce0"), gid(3, v4(10, 77, 0, 1), "roce0")});
  const PortChoice choice = choose_ports({port}, {}, kInterfaces);
  EXPECT_EQ(used(choice), Texts{"rxe0:1/2"});
  EXPECT_EQ(
      choice.remarks,
      Texts{"rxe0 port 1: GID 0 (fe80::1) rejected: it is link-local, which is ambiguous without "
            "a scope; GID 1 (fd00::1) rejected: GID 2 is preferred; GID 2 (10.77.0.1, RoCE v2, "
            "roce0) chosen; GID 3 (10.77.0.1) "
            "rejected: GID 2 is preferred"});
  const Port six = port_of("rxe2", 1, {gid(0, v6(0xfd, 0, 2), "roce2")});
  EXPECT_EQ(used({six, kFirst}), (Texts{"rxe0:1/3", "rxe2:1/0"}))
      << "the preference holds across ports";
}

TEST(PortChoice, RejectsLinkLocalGids) {
  const Port local = port_of("rxe1", 1, {gid(1, v6(0xfe, 0x80, 1), "roce1")});
  EXPECT_EQ(used({local, kFirst}), Texts{"rxe0:1/3"});
  const PortChoice choice = choose_ports({local}, {}, kInterfaces);
  EXPECT_EQ(used(choice), Texts{});
  EXPECT_EQ(choice.why_none,
            "no RoCE port can be used (rxe1 port 1: GID 1 (fe80::1) rejected: it is link-local, "
            "which is ambiguous without a scope)");
}

TEST(PortChoice, RequiresUsableNamedDevice) {
  Port down = kSecond;
  down.active = false;
  down.state = "down";
  EXPECT_EQ(used({down, kFirst}, devices("rxe1,rxe0")), Texts{"rxe0:1/3"})
      << "one of the named devices is usable";
  EXPECT_EQ(used({down}, {}), Texts{}) << "no device is named";
  EXPECT_EQ(used({down}, devices("^rxe0")), Texts{});
  const auto choose = [&] { return choose_ports({down, kFirst}, devices("rxe1"), kInterfaces); };
  EXPECT_EQ(error_of(hcclSystemError, choose),
            "HCCL_IB_HCA=\"rxe1\": no RoCE port can be used (rxe1 port 1 rejected: it is down "
            "(check its cable and `ip link`) | rxe0 port 1 rejected: HCCL_IB_HCA=rxe1 does not "
            "name it); make one of the named ports usable, unset HCCL_IB_HCA to consider all "
            "devices, or set HCCL_IB_DISABLE=1 to run without RoCE");
}

TEST(PortChoice, RejectsAddressesOfOtherNamespaces) {
  const Port foreign =
      port_of("rxe9", 1, {gid(1, v6(0xfe, 0x80, 9), "roce0"), gid(3, v4(10, 99, 0, 1), "roce0")});
  const PortChoice choice = choose_ports({foreign, kFirst}, {}, kInterfaces);
  EXPECT_EQ(used(choice), Texts{"rxe0:1/3"});
  EXPECT_EQ(choice.remarks[0],
            "rxe9 port 1: GID 1 (fe80::9) rejected: no interface of this network namespace has "
            "that address; GID 3 (10.99.0.1) rejected: no interface of this network namespace has "
            "that address");
  EXPECT_EQ(used({foreign, kFirst}, interfaces("roce0")), Texts{"rxe0:1/3"})
      << "a name denotes a different interface in each namespace";
  EXPECT_EQ(used({foreign}), Texts{});
}

TEST(PortChoice, RejectsDownAndInfinibandPorts) {
  Port down = kFirst;
  down.active = false;
  down.state = "down";
  Port infiniband = kSecond;
  infiniband.ethernet = false;
  Port shut;
  shut.device = "rxe2";
  shut.unreadable = "it cannot be opened: Permission denied";
  Port list;
  list.unreadable = "they cannot be listed: Operation not permitted";
  const Port bare = port_of("rxe3", 1, {});
  Port odd = port_of("rxe4", 2, table(v4(10, 77, 0, 1), "roce0"));
  odd.mtu = 0;
  const PortChoice choice =
      choose_ports({down, infiniband, shut, list, bare, odd}, {}, kInterfaces);
  EXPECT_EQ(used(choice), Texts{});
  EXPECT_EQ(choice.remarks,
            (Texts{"rxe0 port 1 rejected: it is down (check its cable and `ip link`)",
                   "rxe1 port 1 rejected: it is InfiniBand, not RoCE",
                   "rxe2 rejected: it cannot be opened: Permission denied",
                   "RDMA devices rejected: they cannot be listed: Operation not permitted",
                   "rxe3 port 1 rejected: it has no GID (its network interface needs an address)",
                   "rxe4 port 2 rejected: it does not report its MTU"}));
  EXPECT_EQ(choice.why_none, "no RoCE port can be used (" + choice.remarks[0] + " | " +
                                 choice.remarks[1] + " | " + choice.remarks[2] + " | " +
                                 choice.remarks[3] + " | 2 more)");
  EXPECT_EQ(choose_ports({}, {}, kInterfaces).why_none, "there is no RDMA device");
}

TEST(PortChoice, UsesOnlyRoceV2GidsUpToIndex255) {
  const Port port = port_of("rxe0", 1,
                            {gid(0, v4(10, 77, 0, 1), "roce0", GidKind::infiniband),
                             gid(1, v4(10, 77, 0, 1), "roce0", GidKind::roce_v1),
                             gid(2, {}, "roce0"), gid(256, v4(10, 77, 0, 1), "roce0")});
  const PortChoice choice = choose_ports({port}, {}, kInterfaces);
  EXPECT_EQ(used(choice), Texts{});
  EXPECT_EQ(choice.remarks,
            Texts{"rxe0 port 1: GID 0 (10.77.0.1) rejected: it is not a RoCE GID; GID 1 "
                  "(10.77.0.1) rejected: it is RoCE v1, not RoCE v2; GID 2 (::) rejected: it is "
                  "empty; GID 256 (10.77.0.1) rejected: its index is above 255"});
}

TEST(PortChoice, RanksBridgesAndLoopbackLast) {
  const Port bridge = port_of("rxe_br", 1, table(v4(172, 17, 0, 1), "docker0"));
  const Port loopback = port_of("rxe_lo", 1, table(v4(127, 0, 0, 1), "lo"));
  EXPECT_EQ(used({bridge, loopback, kFirst, kSecond}),
            (Texts{"rxe0:1/3", "rxe1:1/3", "rxe_br:1/3", "rxe_lo:1/3"}));
  const Port both =
      port_of("rxe0", 1, {gid(0, v4(172, 17, 0, 1), "docker0"), gid(1, v4(10, 77, 0, 1), "roce0")});
  EXPECT_EQ(used({both}), Texts{"rxe0:1/1"}) << "the order holds among the GIDs of a port, too";
  EXPECT_EQ(used({both}, interfaces("docker,roce0")), Texts{"rxe0:1/0"})
      << "named interfaces override that order";
}

TEST(PortChoice, HonoursSocketInterfaceNames) {
  EXPECT_EQ(used({kFirst, kSecond}, interfaces("roce1")), Texts{"rxe1:1/3"});
  EXPECT_EQ(used({kFirst, kSecond}, interfaces("eth,roce")), (Texts{"rxe0:1/3", "rxe1:1/3"}));
  const PortChoice choice = choose_ports({kFirst}, interfaces("eth"), kInterfaces);
  EXPECT_EQ(used(choice), Texts{});
  EXPECT_NE(choice.remarks[0].find("GID 3 (10.77.0.1) rejected: HCCL_SOCKET_IFNAME=eth does not "
                                   "name its interface roce0"),
            std::string::npos)
      << choice.remarks[0];
  const Port unknown = port_of("rxe0", 1, {gid(0, v4(10, 77, 0, 1), "")});
  EXPECT_EQ(used({unknown}, interfaces("roce")), Texts{});
  EXPECT_EQ(used({unknown}), Texts{"rxe0:1/0"});
}

TEST(PortChoice, ChoosesDevicesByName) {
  const std::vector<Port> ports{kFirst, kSecond};
  EXPECT_EQ(used(ports, devices("rxe1")), Texts{"rxe1:1/3"});
  EXPECT_EQ(used(ports, devices("rxe1,rxe0")), (Texts{"rxe1:1/3", "rxe0:1/3"}))
      << "the first name is preferred";
  EXPECT_EQ(used(ports, devices("rxe")), (Texts{"rxe0:1/3", "rxe1:1/3"}));
  EXPECT_EQ(used(ports, devices("=rxe0:1")), Texts{"rxe0:1/3"});
  EXPECT_EQ(used(ports, devices("^rxe0")), Texts{"rxe1:1/3"});
  EXPECT_EQ(used(ports, devices("^rxe")), Texts{}) << "a list may exclude every device";
  EXPECT_EQ(choose_ports(ports, devices("rxe1"), kInterfaces).remarks[0],
            "rxe0 port 1 rejected: HCCL_IB_HCA=rxe1 does not name it");
}

TEST(PortChoice, RefusesMissingDevices) {
  Port shut;
  shut.device = "rxe2";
  shut.unreadable = "it cannot be opened: Permission denied";
  EXPECT_EQ(refusal({kFirst, kSecond, shut}, devices("mlx5")),
            "HCCL_IB_HCA=\"mlx5\" matches no RDMA device of this host; name one of: rxe0 port 1, "
            "rxe1 port 1, rxe2");
  EXPECT_EQ(refusal({kFirst}, devices("=rxe")),
            "HCCL_IB_HCA=\"=rxe\" matches no RDMA device of this host; name one of: rxe0 port 1");
  EXPECT_NE(refusal({kFirst}, devices("rxe0:2")), "");
  EXPECT_EQ(refusal({}, devices("rxe0")),
            "HCCL_IB_HCA=\"rxe0\" matches no RDMA device of this host; the host has none: unset "
            "HCCL_IB_HCA");
  EXPECT_THROW(static_cast<void>(choose_ports({shut}, devices("rxe2:1"), kInterfaces)), Error)
      << "a named device whose ports are unknown";
}

TEST(PortChoice, RefusesMalformedNames) {
  EXPECT_EQ(
      refusal({kFirst}, devices("rxe0,,rxe1")),
      "HCCL_IB_HCA=\"rxe0,,rxe1\" is not a list of RDMA devices; set it to comma-separated names "
      "such as mlx5_0 or mlx5_0:1, optionally after = or ^");
  EXPECT_NE(refusal({kFirst}, devices("rxe0:")), "");
}

TEST(PortChoice, UsesOnlyRequestedIndex) {
  EXPECT_EQ(used({kFirst, kSecond}, index(3)), (Texts{"rxe0:1/3", "rxe1:1/3"}));
  const Port two =
      port_of("rxe0", 1, {gid(1, v6(0xfd, 0, 1), "roce0"), gid(3, v4(10, 77, 0, 1), "roce0")});
  EXPECT_EQ(used({two}), Texts{"rxe0:1/3"});
  const PortChoice choice = choose_ports({two}, index(1), kInterfaces);
  EXPECT_EQ(used(choice), Texts{"rxe0:1/1"});
  EXPECT_NE(choice.remarks[0].find("GID 1 (fd00::1, RoCE v2, roce0) chosen; "), std::string::npos);
  EXPECT_NE(
      choice.remarks[0].find("GID 3 (10.77.0.1) rejected: HCCL_IB_GID_INDEX=1 names another GID"),
      std::string::npos)
      << choice.remarks[0];
  const Port short_table = port_of("rxe1", 1, {gid(0, v4(10, 78, 0, 1), "roce1")});
  EXPECT_EQ(used({short_table, kFirst}, index(3)), Texts{"rxe0:1/3"})
      << "one port with that index suffices";
}

TEST(PortChoice, RefusesUnusableIndexAndListsUsableOnes) {
  EXPECT_EQ(refusal({kFirst}, index(2)),
            "HCCL_IB_GID_INDEX=2 names no usable GID (rxe0 port 1 GID 2: it is RoCE v1, not RoCE "
            "v2); set it to 3 (rxe0 port 1)");
  EXPECT_EQ(refusal({kFirst, kSecond}, index(7)),
            "HCCL_IB_GID_INDEX=7 names no usable GID (rxe0 port 1 GID 7: it is empty; rxe1 port 1 "
            "GID 7: it is empty); set it to 3 (rxe0 port 1), 3 (rxe1 port 1)");
  EXPECT_EQ(refusal({kFirst}, index(1)),
            "HCCL_IB_GID_INDEX=1 names no usable GID (rxe0 port 1 GID 1: it is link-local, which "
            "is ambiguous without a scope); set it to 3 (rxe0 port 1)");
  EXPECT_EQ(refusal({port_of("rxe0", 1, {gid(0, {}, "roce0")})}, index(0)),
            "HCCL_IB_GID_INDEX=0 names no usable GID (rxe0 port 1 GID 0: it is empty); unset it, "
            "and give the network interface of a RoCE port an address");
  EXPECT_NE(refusal({kFirst}, index(99)).find("GID 99: the port's table has only 16 entries"),
            std::string::npos);
  const PortRequest contradictory{"", 3, "eth"};
  EXPECT_NE(refusal({kFirst}, contradictory)
                .find("GID 3: HCCL_SOCKET_IFNAME=eth does not name its interface roce0"),
            std::string::npos);
  Port down = kFirst;
  down.active = false;
  EXPECT_EQ(refusal({down}, index(2)), "") << "the port is down, so the index is not at fault";
}

}  // namespace
}  // namespace hccl::verbs
