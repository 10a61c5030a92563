// SPDX-License-Identifier: Apache-2.0
// The network interfaces of this machine, and the choice of the interface on which a unique id's
// server listens.
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

// Returns one entry for each address of each interface that is up.
[[nodiscard]] std::vector<Interface> local_interfaces();

// Describes a connection by its two ends: "eth0 10.0.0.1:4000 to 10.0.0.2:5000". Names the
// interface even if it is down, and omits it if no interface has the local address.
[[nodiscard]] std::string connection_text(const Address& local, const Address& remote);

// Returns whether the interface is a bridge or tunnel of containers or virtual machines, which
// other hosts cannot reach.
[[nodiscard]] bool is_virtual(const Interface& candidate);

// Returns whether `prefixes`, the comma-separated list in HCCL_SOCKET_IFNAME, names the interface.
[[nodiscard]] bool is_named(const Interface& candidate, const std::string& prefixes);

// Throws Error(hcclInvalidArgument), which says that HCCL_SOCKET_IFNAME matches no interface, or
// Error(hcclSystemError) if that is because loopback is down.
[[noreturn]] void refuse_interface_names(const std::vector<Interface>& interfaces,
                                         const std::string& prefixes);

// Chooses an interface. If `prefixes` (HCCL_SOCKET_IFNAME, comma separated) is not empty, tries the
// prefixes in order and returns the first interface that matches one; throws
// Error(hcclInvalidArgument), which lists the interfaces, if none matches. If `prefixes` is empty,
// returns the first interface that is neither loopback nor virtual (is_virtual()), else loopback.
// Prefers IPv4 to IPv6, and never chooses link-local IPv6.
[[nodiscard]] Interface choose_interface(const std::vector<Interface>& interfaces,
                                         const std::string& prefixes);

}  // namespace hccl
