// SPDX-License-Identifier: Apache-2.0
// Reads the list of NICs, their ports and their GID tables.
#include "verbs/ports.h"

#include "base/sysfs.h"
#include "base/text.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include <net/if.h>

namespace hccl::verbs {
namespace {

const char* state_text(ibv_port_state state) {
  switch (state) {
    case IBV_PORT_DOWN:
      return "down";
    case IBV_PORT_INIT:
      return "initializing";
    case IBV_PORT_ARMED:
      return "armed";
    case IBV_PORT_ACTIVE:
      return "active";
    case IBV_PORT_ACTIVE_DEFER:
      return "active, link deferred";
    case IBV_PORT_NOP:
      break;
  }
  return "in an unknown state";
}

GidBytes raw_bytes(const ibv_gid& gid) {
  GidBytes bytes{};
  std::copy(std::begin(gid.raw), std::end(gid.raw), bytes.begin());
  return bytes;
}

class PortReader {
 public:
  PortReader(const VerbsLibrary& library, ibv_context* context, std::string sysfs, Port& port)
      : library_(library), context_(context), sysfs_(std::move(sysfs)), port_(port) {}

  void read() {
    ibv_port_attr attributes{};
    if (const int error = query_port(library_, context_, number(), &attributes); error != 0) {
      port_.unreadable = text("it cannot be queried: ", system_error_text(error));
      return;
    }
    port_.state = state_text(attributes.state);
    port_.active = attributes.state == IBV_PORT_ACTIVE;
    port_.ethernet = attributes.link_layer == IBV_LINK_LAYER_ETHERNET;
    port_.mtu = bytes_of(attributes.active_mtu);
    port_.gid_table_length = attributes.gid_tbl_len;
    for (int index = 0; index < attributes.gid_tbl_len; ++index) {
      std::optional<Gid> gid = read_gid(index);
      if (gid && !is_zero(gid->bytes)) port_.gids.push_back(std::move(*gid));
    }
  }

 private:
  [[nodiscard]] std::uint8_t number() const { return static_cast<std::uint8_t>(port_.number); }

  [[nodiscard]] std::optional<Gid> read_gid(int index) const {
    if (library_.query_gid_ex == nullptr) return read_gid_from_sysfs(index);
    ibv_gid_entry entry{};
    const int error = library_.query_gid_ex(context_, number(), static_cast<std::uint32_t>(index),
                                            &entry, 0, sizeof(entry));
    if (error == ENODATA) return std::nullopt;  // an empty entry
    // On kernels before 5.10, libibverbs itself reads sysfs, and fails if the interface belongs to
    // another network namespace.
    if (error != 0) return read_gid_from_sysfs(index);
    Gid gid{index, raw_bytes(entry.gid), kind_of(entry.gid_type), ""};
    std::array<char, IF_NAMESIZE> name{};
    if (entry.ndev_ifindex != 0 && if_indextoname(entry.ndev_ifindex, name.data()) != nullptr)
      gid.interface = name.data();
    return gid;
  }

  [[nodiscard]] std::optional<Gid> read_gid_from_sysfs(int index) const {
    ibv_gid bytes{};
    if (library_.query_gid(context_, number(), index, &bytes) != 0) return std::nullopt;
    Gid gid{index, raw_bytes(bytes), Gid::Kind::infiniband, ""};
    if (is_zero(gid.bytes)) return gid;
    const std::string folder =
        text(sysfs_, '/', port_.device, "/ports/", port_.number, "/gid_attrs/");
    const bool is_v2 = read_sysfs(text(folder, "types/", index)) == "RoCE v2";
    gid.kind = kind_of(is_v2 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1);
    gid.interface = read_sysfs(text(folder, "ndevs/", index));
    return gid;
  }

  // In sysfs, GIDs of InfiniBand ports have the same type as those of RoCE v1: "IB/RoCE v1".
  [[nodiscard]] Gid::Kind kind_of(std::uint32_t type) const {
    if (type == IBV_GID_TYPE_ROCE_V2) return Gid::Kind::roce_v2;
    return type == IBV_GID_TYPE_ROCE_V1 && port_.ethernet ? Gid::Kind::roce_v1
                                                          : Gid::Kind::infiniband;
  }

  const VerbsLibrary& library_;
  ibv_context* context_;
  std::string sysfs_;
  Port& port_;
};

Port unreadable(const std::string& device, std::string reason) {
  Port port;
  port.device = device;
  port.unreadable = std::move(reason);
  return port;
}

std::string why_not_opened(int error) {
  const bool refused = error == EACCES || error == EPERM || error == ENOENT;
  return text("it cannot be opened: ", system_error_text(error),
              refused ? " (does this process have /dev/infiniband?)" : "");
}

void list_ports_of(const VerbsLibrary& library, ibv_device* device, const std::string& sysfs,
                   std::vector<Port>& ports) {
  const char* const given = library.get_device_name(device);
  const std::string name = given == nullptr ? "a device without a name" : given;
  errno = 0;
  const std::unique_ptr<ibv_context, decltype(library.close_device)> context(
      library.open_device(device), library.close_device);
  if (!context) {
    ports.push_back(unreadable(name, why_not_opened(errno)));
    return;
  }
  ibv_device_attr attributes{};
  if (const int error = library.query_device(context.get(), &attributes); error != 0) {
    ports.push_back(unreadable(name, text("it cannot be queried: ", system_error_text(error))));
    return;
  }
  for (int number = 1; number <= attributes.phys_port_cnt; ++number) {
    Port port;
    port.device = name;
    port.number = number;
    PortReader(library, context.get(), sysfs, port).read();
    ports.push_back(std::move(port));
  }
}

}  // namespace

std::uint32_t bytes_of(ibv_mtu mtu) {
  constexpr std::uint32_t kUnit = 128;
  return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? kUnit << static_cast<unsigned>(mtu) : 0;
}

std::vector<Port> list_ports(const VerbsLibrary& library, const std::string& sysfs) {
  int count = 0;
  errno = 0;
  const std::unique_ptr<ibv_device*, decltype(library.free_device_list)> devices(
      library.get_device_list(&count), library.free_device_list);
  // ENOSYS means that the kernel does not support RDMA. The machine then has no NICs, which is not
  // an error.
  if (!devices && errno != ENOSYS)
    return {unreadable("", text("they cannot be listed: ", system_error_text(errno)))};
  std::vector<Port> ports;
  for (int i = 0; devices && i < count; ++i) list_ports_of(library, devices.get()[i], sysfs, ports);
  return ports;
}

}  // namespace hccl::verbs
