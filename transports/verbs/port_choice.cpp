// SPDX-License-Identifier: Apache-2.0
// Rejects unusable ports and GIDs, each with a reason, and chooses the best of the others.
#include "verbs/port_choice.h"

#include "base/device_list.h"
#include "base/error.h"
#include "base/text.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

namespace hccl::verbs {
namespace {

constexpr std::uint32_t kLeastMtu = 256;
constexpr int kMaxGidIndex = 255;  // the address vector of a queue pair has one byte for the index

struct ScoredGid {
  const Gid* gid = nullptr;
  std::string objection;     // empty if there is none
  bool last_resort = false;  // loopback, or a container bridge or tunnel
};

struct ScoredPort {
  const Port* port = nullptr;
  std::string objection;     // to the whole port
  std::size_t position = 0;  // in HCCL_IB_HCA
  std::vector<ScoredGid> gids;
  const ScoredGid* chosen = nullptr;
};

DeviceList parse(const PortRequest& request) {
  auto list = parse_device_list(request.devices);
  if (list) return std::move(*list);
  throw Error(hcclInvalidArgument,
              text("HCCL_IB_HCA=", quoted(request.devices),
                   " is not a list of RDMA devices; set it to comma-separated names such as mlx5_0 "
                   "or mlx5_0:1, optionally after = or ^"));
}

std::string name_of(const Port& port) {
  if (port.device.empty()) return "RDMA devices";
  return port.number == 0 ? port.device : text(port.device, " port ", port.number);
}

std::string join(const std::vector<std::string>& parts, const char* between) {
  std::string joined;
  for (const std::string& part : parts) joined += text(joined.empty() ? "" : between, part);
  return joined;
}

void refuse_devices(const std::vector<Port>& ports, const std::string& devices) {
  std::vector<std::string> names;
  for (const Port& port : ports) {
    if (!port.device.empty()) names.push_back(name_of(port));
  }
  const std::string there_is = names.empty() ? "the host has none: unset HCCL_IB_HCA"
                                             : text("name one of: ", join(names, ", "));
  throw Error(hcclInvalidArgument, text("HCCL_IB_HCA=", quoted(devices),
                                        " matches no RDMA device of this host; ", there_is));
}

std::string objection_to(const Port& port, const DeviceList& list, const std::string& devices) {
  if (!port.device.empty() && !list.names(port.device, port.number))
    return text("HCCL_IB_HCA=", devices, " does not name it");
  if (!port.unreadable.empty()) return port.unreadable;
  if (!port.ethernet) return "it is InfiniBand, not RoCE";
  if (!port.active) return text("it is ", port.state, " (check its cable and `ip link`)");
  if (port.mtu < kLeastMtu) return "it does not report its MTU";
  if (port.gids.empty()) return "it has no GID (its network interface needs an address)";
  return "";
}

// Returns the reason why the GID cannot be used, or an empty string if it can. `own` is the local
// interface that has the GID as an address, or null.
std::string objection_to(const Gid& gid, const PortRequest& request, const Interface* own) {
  if (request.gid_index && gid.index != *request.gid_index)
    return text("HCCL_IB_GID_INDEX=", *request.gid_index, " names another GID");
  if (is_zero(gid.bytes)) return "it is empty";
  if (gid.kind != Gid::Kind::roce_v2)
    return gid.kind == Gid::Kind::roce_v1 ? "it is RoCE v1, not RoCE v2" : "it is not a RoCE GID";
  if (gid.index > kMaxGidIndex) return text("its index is above ", kMaxGidIndex);
  // Network namespaces may share a NIC; its GID table then contains the addresses of all these
  // namespaces.
  if (own == nullptr) return "no interface of this network namespace has that address";
  const Interface its{gid.interface, address_of(gid.bytes)};
  if (!request.interface_names.empty() && !is_named(its, request.interface_names))
    return text("HCCL_SOCKET_IFNAME=", request.interface_names, " does not name its interface ",
                gid.interface.empty() ? "(unknown)" : gid.interface);
  if (is_link_local(gid.bytes)) return "it is link-local, which is ambiguous without a scope";
  return "";
}

const Interface* interface_with(const GidBytes& gid, const std::vector<Interface>& interfaces) {
  const Address address = address_of(gid);
  const auto own = std::ranges::find_if(
      interfaces, [&](const Interface& entry) { return entry.address.same_host(address); });
  return own == interfaces.end() ? nullptr : &*own;
}

ScoredGid score(const Gid& gid, const PortRequest& request,
                const std::vector<Interface>& interfaces) {
  const Interface* const own = interface_with(gid.bytes, interfaces);
  ScoredGid scored{&gid, objection_to(gid, request, own)};
  if (request.interface_names.empty()) {
    const Interface its{gid.interface, address_of(gid.bytes)};
    scored.last_resort = is_virtual(its) || (own != nullptr && own->loopback);
  }
  return scored;
}

ScoredPort score(const Port& port, const PortRequest& request, const DeviceList& list,
                 const std::vector<Interface>& interfaces) {
  ScoredPort scored;
  scored.port = &port;
  scored.objection = objection_to(port, list, request.devices);
  if (!scored.objection.empty()) return scored;
  if (!list.all_but) scored.position = list.position_of(port.device, port.number).value_or(0);
  for (const Gid& gid : port.gids) scored.gids.push_back(score(gid, request, interfaces));
  return scored;
}

auto order_of(const ScoredGid& scored) {
  return std::tuple(scored.last_resort, !is_ipv4(scored.gid->bytes), scored.gid->index);
}

void choose_gid(ScoredPort& port) {
  for (const ScoredGid& scored : port.gids) {
    if (!scored.objection.empty()) continue;
    if (port.chosen == nullptr || order_of(scored) < order_of(*port.chosen)) port.chosen = &scored;
  }
}

std::string remark_on(const ScoredGid& scored, const ScoredGid* chosen) {
  const Gid& gid = *scored.gid;
  if (&scored == chosen) {
    return text("GID ", gid.index, " (", to_text(gid.bytes), ", ", to_text(gid.kind), ", ",
                gid.interface.empty() ? "unknown interface" : gid.interface, ") chosen");
  }
  const std::string why = scored.objection.empty()
                              ? text("GID ", chosen->gid->index, " is preferred")
                              : scored.objection;
  return text("GID ", gid.index, " (", to_text(gid.bytes), ") rejected: ", why);
}

std::string remark_on(const ScoredPort& port) {
  if (!port.objection.empty()) return text(name_of(*port.port), " rejected: ", port.objection);
  std::vector<std::string> parts;
  for (const ScoredGid& scored : port.gids) parts.push_back(remark_on(scored, port.chosen));
  return text(name_of(*port.port), ": ", join(parts, "; "));
}

// Returns the reason why the port cannot use the GID that HCCL_IB_GID_INDEX names.
std::string why_not_index(const ScoredPort& port, int index) {
  const auto named = std::ranges::find_if(
      port.gids, [&](const ScoredGid& scored) { return scored.gid->index == index; });
  const int length = port.port->gid_table_length;
  if (named != port.gids.end()) return named->objection;
  return index < length ? "it is empty" : text("the port's table has only ", length, " entries");
}

void refuse_index(const std::vector<ScoredPort>& ports, const PortRequest& request,
                  const std::vector<Interface>& interfaces) {
  PortRequest any_index = request;
  any_index.gid_index.reset();
  std::vector<std::string> reasons;
  std::vector<std::string> others;
  for (const ScoredPort& port : ports) {
    if (!port.objection.empty()) continue;
    const std::string name = name_of(*port.port);
    reasons.push_back(
        text(name, " GID ", *request.gid_index, ": ", why_not_index(port, *request.gid_index)));
    std::vector<std::string> usable;
    for (const Gid& gid : port.port->gids) {
      if (score(gid, any_index, interfaces).objection.empty()) usable.push_back(text(gid.index));
    }
    if (!usable.empty()) others.push_back(text(join(usable, " or "), " (", name, ')'));
  }
  const std::string advice =
      others.empty() ? "unset it, and give the network interface of a RoCE port an address"
                     : text("set it to ", join(others, ", "));
  throw Error(hcclInvalidArgument,
              text("HCCL_IB_GID_INDEX=", *request.gid_index, " names no usable GID (",
                   join(reasons, "; "), "); ", advice));
}

std::string why_none(const std::vector<std::string>& remarks) {
  constexpr std::size_t kMaxListed = 4;
  if (remarks.empty()) return "there is no RDMA device";
  std::vector<std::string> listed(
      remarks.begin(),
      remarks.begin() + static_cast<std::ptrdiff_t>(std::min(remarks.size(), kMaxListed)));
  if (remarks.size() > kMaxListed) listed.push_back(text(remarks.size() - kMaxListed, " more"));
  return text("no RoCE port can be used (", join(listed, " | "), ')');
}

}  // namespace

PortChoice choose_ports(const std::vector<Port>& ports, const PortRequest& request,
                        const std::vector<Interface>& interfaces) {
  const DeviceList list = parse(request);
  const auto matches = [&](const Port& port) { return list.names(port.device, port.number); };
  if (!request.devices.empty() && !list.all_but && std::ranges::none_of(ports, matches))
    refuse_devices(ports, request.devices);

  std::vector<ScoredPort> scored;
  scored.reserve(ports.size());
  for (const Port& port : ports) scored.push_back(score(port, request, list, interfaces));
  for (ScoredPort& port : scored) choose_gid(port);

  PortChoice choice;
  std::vector<const ScoredPort*> usable;
  bool any_candidate = false;
  for (const ScoredPort& port : scored) {
    choice.remarks.push_back(remark_on(port));
    any_candidate = any_candidate || port.objection.empty();
    if (port.chosen != nullptr) usable.push_back(&port);
  }
  if (usable.empty() && any_candidate && request.gid_index)
    refuse_index(scored, request, interfaces);
  if (usable.empty() && !request.devices.empty() && !list.all_but) {
    throw Error(hcclSystemError,
                text("HCCL_IB_HCA=", quoted(request.devices), ": ", why_none(choice.remarks),
                     "; make one of the named ports usable, unset HCCL_IB_HCA to consider all "
                     "devices, or set HCCL_IB_DISABLE=1 to run without RoCE"));
  }
  std::ranges::stable_sort(usable, {}, [](const ScoredPort* port) {
    return std::tuple(port->position, port->chosen->last_resort,
                      !is_ipv4(port->chosen->gid->bytes));
  });
  for (const ScoredPort* port : usable) {
    choice.usable.push_back(
        {port->port->device, port->port->number, *port->chosen->gid, port->port->mtu});
  }
  if (choice.usable.empty()) choice.why_none = why_none(choice.remarks);
  return choice;
}

}  // namespace hccl::verbs
