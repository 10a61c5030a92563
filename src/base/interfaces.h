// SPDX-License-Identifier: Apache-2.0
// The network interfaces of this machine, and which of them a unique id's server listens on.
#pragma once

#include "base/address.h"

#include <string>
#include <vector>

namespace hccl {

struct Interface {
  std::string name;
  Address address;
  bool loopback = false;
  int prefix_length = 0;  // of its subnet, in bits
};

// One entry per address of each interface that is up.
[[nodiscard]] std::vector<Interface> local_interfaces();

// The two ends of a connection, for texts: "eth0 10.0.0.1:4000 to 10.0.0.2:5000". Names the
// interface even if it is down; without the name if the local address is on none any more.
[[nodiscard]] std::string connection_text(const Address& local, const Address& remote);

// A bridge or tunnel of containers or virtual machines: other hosts cannot reach it.
[[nodiscard]] bool is_virtual(const Interface& candidate);

// Returns whether `prefixes`, the comma-separated list in HCCL_SOCKET_IFNAME, names the interface.
[[nodiscard]] bool is_named(const Interface& candidate, const std::string& prefixes);

// Throws the Error(hcclInvalidArgument) that HCCL_SOCKET_IFNAME matches no interface.
[[noreturn]] void refuse_interface_names(const std::vector<Interface>& interfaces,
                                         const std::string& prefixes);

// With `prefixes` (HCCL_SOCKET_IFNAME, comma separated): the first match of the first prefix that
// has one, else Error(hcclInvalidArgument) naming what there is. Without: the first that is neither
// loopback nor a virtual one of containers and tunnels, else loopback. IPv4 goes before IPv6;
// link-local IPv6 is not a choice.
[[nodiscard]] Interface choose_interface(const std::vector<Interface>& interfaces,
                                         const std::string& prefixes);

}  // namespace hccl
