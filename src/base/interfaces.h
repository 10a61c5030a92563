// SPDX-License-Identifier: Apache-2.0
// Lists the network interfaces of this machine, and chooses the one on which the server of a unique
// id listens.
#pragma once

#include "base/address.h"

#include <string>
#include <vector>

namespace hccl {

struct Interface {
  std::string name;
  Address address;
  bool loopback = false;
  int prefix_length = 0;  // of the interface's subnet, in bits
};

// Returns one entry for each IP address of each interface that is up. Throws
// Error(hcclSystemError).
[[nodiscard]] std::vector<Interface> local_interfaces();

// Describes a connection by its two ends: "eth0 10.0.0.1:4000 to 10.0.0.2:5000". Leaves out the
// interface if none has the local address.
[[nodiscard]] std::string connection_text(const Address& local, const Address& remote);

// Returns whether the interface's name (and if it begins with "veth", also the address) shows that
// the interface serves containers or virtual machines. Other hosts cannot reach such an interface.
[[nodiscard]] bool is_virtual(const Interface& candidate);

// Returns whether the interface's name starts with one of the comma-separated `prefixes`.
[[nodiscard]] bool is_named(const Interface& candidate, const std::string& prefixes);

// Throws Error(hcclInvalidArgument), which says that HCCL_SOCKET_IFNAME matches no interface. If
// none matches because loopback is down, throws Error(hcclSystemError) instead.
[[noreturn]] void refuse_interface_names(const std::vector<Interface>& interfaces,
                                         const std::string& prefixes);

// Chooses an interface. If `prefixes` (HCCL_SOCKET_IFNAME, comma separated) is not empty, tries the
// prefixes in order and returns the first interface that matches one. If `prefixes` is empty,
// returns the first interface that is neither loopback nor virtual (is_virtual()), else loopback.
// Prefers IPv4 to IPv6, and never chooses link-local IPv6. If no interface can be chosen, throws
// Error(hcclInvalidArgument or hcclSystemError). The error text lists the interfaces, or says that
// loopback is down.
[[nodiscard]] Interface choose_interface(const std::vector<Interface>& interfaces,
                                         const std::string& prefixes);

}  // namespace hccl
