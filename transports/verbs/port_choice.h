// SPDX-License-Identifier: Apache-2.0
// Which ports and GIDs a rank uses, and why not others; no device is touched here.
#pragma once

#include "base/interfaces.h"
#include "verbs/ports.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hccl::verbs {

struct PortRequest {
  std::string devices;           // HCCL_IB_HCA (base/device_list.h); empty: all
  std::optional<int> gid_index;  // HCCL_IB_GID_INDEX
  std::string interface_names;   // HCCL_SOCKET_IFNAME
};

struct UsablePort {
  std::string device;
  int number = 1;
  Gid gid;                // RoCE v2; its index fits a queue pair's attributes
  std::uint32_t mtu = 0;  // in bytes
};

struct PortChoice {
  std::vector<UsablePort> usable;    // the best first; each port at most once
  std::vector<std::string> remarks;  // one for each port: what was chosen or rejected, and why
  std::string why_none;              // a clause, where nothing is usable
};

// A port is usable if it is active, Ethernet's, named by the request and has a RoCE v2 GID that is
// the address of an interface here, not a link-local one. The named GID comes first, else IPv4
// before IPv6. Ports come in the order in which HCCL_IB_HCA names them; then those on loopback or
// interfaces of containers come last. Throws Error(hcclInvalidArgument) where HCCL_IB_HCA matches
// no device, or no port has a usable GID with the index, and Error(hcclSystemError) where no port
// that HCCL_IB_HCA names can be used.
[[nodiscard]] PortChoice choose_ports(const std::vector<Port>& ports, const PortRequest& request,
                                      const std::vector<Interface>& interfaces);

}  // namespace hccl::verbs
