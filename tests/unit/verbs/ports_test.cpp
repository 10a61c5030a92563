// SPDX-License-Identifier: Apache-2.0
// Tests GIDs, and how the ports of devices are read.

#include "verbs/ports.h"

#include "fake_verbs.h"
#include "samples.h"

#include <cerrno>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <net/if.h>
#include <unistd.h>

namespace hccl::verbs {
namespace {

// Tests the bytes of GIDs, and which pairs of GIDs can be connected.

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

TEST(Gid, OnlyIpv6IsLinkLocal) {
  EXPECT_TRUE(is_link_local(v6(0xfe, 0x80, 1)));
  EXPECT_TRUE(is_link_local(v6(0xfe, 0xbf, 1)));
  EXPECT_FALSE(is_link_local(v6(0xfe, 0xc0, 1)));
  EXPECT_FALSE(is_link_local(v4(169, 254, 0, 1))) << "TCP uses these addresses, too";
  EXPECT_TRUE(is_zero(GidBytes{}));
  EXPECT_FALSE(is_zero(v6(0, 0, 1)));
}

TEST(Gid, KindsHaveNames) {
  EXPECT_STREQ(to_text(Gid::Kind::infiniband), "InfiniBand");
  EXPECT_STREQ(to_text(Gid::Kind::roce_v1), "RoCE v1");
  EXPECT_STREQ(to_text(Gid::Kind::roce_v2), "RoCE v2");
}

TEST(Gid, ConnectsOnlyToTheSameFamily) {
  EXPECT_EQ(why_unreachable(v4(10, 0, 0, 1), v4(192, 168, 7, 1)), "") << "subnets are routed";
  EXPECT_EQ(why_unreachable(v6(0xfd, 0, 1), v6(0x20, 0x01, 1)), "");
  EXPECT_EQ(why_unreachable(v6(0xfe, 0x80, 1), v6(0xfe, 0x80, 2)), "");
  EXPECT_EQ(why_unreachable(v4(10, 0, 0, 1), v6(0xfd, 0, 2)),
            "its GID fd00::2 is IPv6, but this rank's GID 10.0.0.1 is IPv4");
  EXPECT_EQ(why_unreachable(v6(0xfd, 0, 2), v4(10, 0, 0, 1)),
            "its GID 10.0.0.1 is IPv4, but this rank's GID fd00::2 is IPv6");
}

TEST(Gid, LoopbackConnectsOnlyWithinHost) {
  const GidBytes loopback = v4(127, 0, 0, 1);
  EXPECT_EQ(why_unreachable(loopback, loopback, true), "");
  EXPECT_EQ(why_unreachable(loopback, loopback, false),
            "its GID 127.0.0.1 cannot be reached from this rank's GID 127.0.0.1: loopback does not "
            "cross network namespaces");
  EXPECT_NE(why_unreachable(v4(10, 0, 0, 1), loopback, false), "");
  EXPECT_NE(why_unreachable(v6(0, 0, 1), v6(0xfd, 0, 1), false), "");
  EXPECT_EQ(why_unreachable(v4(10, 0, 0, 1), v4(10, 0, 0, 2), false), "");
}

// Tests how the ports of usable and unusable devices are read.

namespace fs = std::filesystem;
using test::ethernet_port;
using test::FakePort;
using test::FakeVerbs;
using test::v4;
using test::v6;

ibv_gid_entry entry(const GidBytes& bytes, ibv_gid_type type, unsigned interface = 0) {
  ibv_gid_entry result{};
  std::copy(bytes.begin(), bytes.end(), result.gid.raw);
  result.gid_type = type;
  result.ndev_ifindex = interface;
  return result;
}

class Ports : public testing::Test {
 protected:
  void TearDown() override {
    EXPECT_EQ(verbs_.open_devices, 0) << "every device must be closed";
    EXPECT_EQ(verbs_.open_lists, 0) << "the device list must be freed";
  }
  std::vector<Port> list() const { return list_ports(verbs_.library); }

  FakeVerbs verbs_;
};

TEST_F(Ports, AreEmptyWithoutDevices) {
  EXPECT_TRUE(list().empty());
  verbs_.list_error = ENOSYS;
  EXPECT_TRUE(list().empty()) << "a kernel without RDMA";
}

TEST_F(Ports, ReportUnreadableDeviceList) {
  verbs_.list_error = EPERM;
  const auto ports = list();
  ASSERT_EQ(ports.size(), 1U);
  EXPECT_EQ(ports[0].device, "");
  EXPECT_EQ(ports[0].number, 0);
  EXPECT_EQ(ports[0].unreadable, "they cannot be listed: Operation not permitted");
}

TEST_F(Ports, ReportWhyDeviceIsUnreadable) {
  verbs_.devices = {{"rxe0", {ethernet_port(0)}},
                    {"rxe1", {}},
                    {"rxe2", {}},
                    {"rxe3", {ethernet_port(0), ethernet_port(0)}}};
  verbs_.devices[1].open_error = EACCES;
  verbs_.devices[2].query_error = EIO;
  verbs_.devices[3].ports[0].error = ENODEV;
  const auto ports = list();
  ASSERT_EQ(ports.size(), 5U);
  EXPECT_EQ(ports[0].unreadable, "");
  EXPECT_EQ(ports[1].device, "rxe1");
  EXPECT_EQ(ports[1].number, 0);
  EXPECT_EQ(ports[1].unreadable,
            "it cannot be opened: Permission denied (does this process have /dev/infiniband?)");
  EXPECT_EQ(ports[2].unreadable, "it cannot be queried: Input/output error");
  EXPECT_EQ(ports[3].number, 1);
  EXPECT_EQ(ports[3].unreadable, "it cannot be queried: No such device");
  EXPECT_EQ(ports[4].number, 2);
  EXPECT_EQ(ports[4].unreadable, "");
}

TEST_F(Ports, ReadStateLinkLayerAndMtu) {
  FakePort down = ethernet_port(0);
  down.attributes.state = IBV_PORT_DOWN;
  down.attributes.active_mtu = IBV_MTU_4096;
  FakePort infiniband = ethernet_port(0);
  infiniband.attributes.link_layer = IBV_LINK_LAYER_INFINIBAND;
  infiniband.attributes.state = IBV_PORT_ARMED;
  verbs_.devices = {{"mlx5_0", {ethernet_port(7), down, infiniband}}};
  const auto ports = list();
  ASSERT_EQ(ports.size(), 3U);
  EXPECT_TRUE(ports[0].active && ports[0].ethernet);
  EXPECT_EQ(ports[0].state, "active");
  EXPECT_EQ(ports[0].mtu, 1024U);
  EXPECT_EQ(ports[0].gid_table_length, 7);
  EXPECT_FALSE(ports[1].active);
  EXPECT_EQ(ports[1].state, "down");
  EXPECT_EQ(ports[1].mtu, 4096U);
  EXPECT_EQ(ports[2].number, 3);
  EXPECT_FALSE(ports[2].ethernet);
  EXPECT_EQ(ports[2].state, "armed");
}

TEST_F(Ports, ConvertEveryMtu) {
  const std::vector<std::uint32_t> bytes{256, 512, 1024, 2048, 4096};
  for (int mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; ++mtu)
    EXPECT_EQ(bytes_of(static_cast<ibv_mtu>(mtu)), bytes[static_cast<std::size_t>(mtu - 1)]);
  EXPECT_EQ(bytes_of(ibv_mtu{}), 0U);
  EXPECT_EQ(bytes_of(static_cast<ibv_mtu>(7)), 0U);
}

TEST_F(Ports, SkipEmptyGids) {
  const unsigned loopback = if_nametoindex("lo");
  FakePort port = ethernet_port(1024);
  port.gids[0] = entry(v6(0xfe, 0x80, 1), IBV_GID_TYPE_ROCE_V1, loopback);
  port.gids[3] = entry(v4(10, 77, 0, 1), IBV_GID_TYPE_ROCE_V2, loopback);
  port.gids[4] = entry(GidBytes{}, IBV_GID_TYPE_ROCE_V2);
  port.gids[1023] = entry(v6(0xfd, 0, 1), IBV_GID_TYPE_IB, 0x7ffffff0);
  verbs_.devices = {{"rxe0", {port}}};
  const auto ports = list();
  ASSERT_EQ(ports.size(), 1U);
  const auto& gids = ports[0].gids;
  ASSERT_EQ(gids.size(), 3U);
  EXPECT_EQ(gids[0].index, 0);
  EXPECT_EQ(gids[0].kind, Gid::Kind::roce_v1);
  EXPECT_EQ(gids[1].index, 3);
  EXPECT_EQ(gids[1].kind, Gid::Kind::roce_v2);
  EXPECT_EQ(gids[1].bytes, v4(10, 77, 0, 1));
  EXPECT_EQ(gids[1].interface, "lo");
  EXPECT_EQ(gids[2].index, 1023);
  EXPECT_EQ(gids[2].kind, Gid::Kind::infiniband);
  EXPECT_EQ(gids[2].interface, "") << "its interface is in another network namespace";
}

// If the library or the kernel is too old for ibv_query_gid_ex(), the types and interfaces of GIDs
// must be read from sysfs.
class OldPorts : public Ports, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "hccl-sysfs-XXXXXX").string();
    root_ = mkdtemp(name.data());
    if (GetParam()) {
      verbs_.library.query_gid_ex = nullptr;
    } else {
      verbs_.gid_error = ENODEV;
    }
  }
  void TearDown() override {
    Ports::TearDown();
    fs::remove_all(root_);
  }

  void write(const std::string& name, const std::string& content) const {
    const fs::path file = root_ / "rxe0/ports/1/gid_attrs" / name;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << content << '\n';
  }

  fs::path root_;
};

TEST_P(OldPorts, AreReadFromSysfs) {
  FakePort port = ethernet_port(8);
  port.gids[0] = entry(v6(0xfe, 0x80, 1), IBV_GID_TYPE_ROCE_V1);
  port.gids[1] = entry(v6(0xfe, 0x80, 1), IBV_GID_TYPE_ROCE_V1);
  port.gids[5] = entry(v4(10, 77, 0, 1), IBV_GID_TYPE_ROCE_V1);
  verbs_.devices = {{"rxe0", {port}}};
  write("types/0", "IB/RoCE v1");
  write("ndevs/0", "roce0");
  write("types/5", "RoCE v2");
  write("ndevs/5", "roce0.7");
  const auto ports = list_ports(verbs_.library, root_.string());
  ASSERT_EQ(ports.size(), 1U);
  const auto& gids = ports[0].gids;
  ASSERT_EQ(gids.size(), 3U);
  EXPECT_EQ(gids[0].kind, Gid::Kind::roce_v1);
  EXPECT_EQ(gids[0].interface, "roce0");
  EXPECT_EQ(gids[1].kind, Gid::Kind::roce_v1) << "GIDs without these files predate RoCE v2";
  EXPECT_EQ(gids[1].interface, "");
  EXPECT_EQ(gids[2].index, 5);
  EXPECT_EQ(gids[2].kind, Gid::Kind::roce_v2);
  EXPECT_EQ(gids[2].interface, "roce0.7");
}

TEST_P(OldPorts, InfinibandIsNotRoce) {
  FakePort port = ethernet_port(1);
  port.attributes.link_layer = IBV_LINK_LAYER_INFINIBAND;
  port.gids[0] = entry(v6(0xfe, 0x80, 1), IBV_GID_TYPE_IB);
  verbs_.devices = {{"rxe0", {port}}};
  write("types/0", "IB/RoCE v1");
  const auto ports = list_ports(verbs_.library, root_.string());
  ASSERT_EQ(ports.size(), 1U);
  ASSERT_EQ(ports[0].gids.size(), 1U);
  EXPECT_EQ(ports[0].gids[0].kind, Gid::Kind::infiniband);
}

std::string name_of_old_part(const testing::TestParamInfo<bool>& info) {
  return info.param ? "library" : "kernel";
}

INSTANTIATE_TEST_SUITE_P(Old, OldPorts, testing::Bool(), name_of_old_part);

}  // namespace
}  // namespace hccl::verbs
