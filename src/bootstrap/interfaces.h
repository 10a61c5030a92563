// SPDX-License-Identifier: Apache-2.0
// The network interfaces of this machine, and which of them a unique id's server listens on.
#pragma once

#include "bootstrap/address.h"

#include <string>
#include <vector>

namespace hccl::bootstrap {

struct Interface {
  std::string name;
  Address address;
  bool loopback = false;
};

// One entry per address of each interface that is up.
[[nodiscard]] std::vector<Interface> local_interfaces();

// With `prefixes` (HCCL_SOCKET_IFNAME, comma separated): the first match of the first prefix that
// has one, else Error(hcclInvalidArgument) naming what there is. Without: the first that is neither
// loopback nor a virtual one of containers and tunnels, else loopback. IPv4 goes before IPv6;
// link-local IPv6 is no choice.
[[nodiscard]] Interface choose_interface(const std::vector<Interface>& interfaces,
                                         const std::string& prefixes);

}  // namespace hccl::bootstrap
