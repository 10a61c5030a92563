// SPDX-License-Identifier: Apache-2.0
// Chooses the ports and GIDs that a rank uses, and explains why the others are rejected. Accesses
// no NIC.
#pragma once

#include "base/interfaces.h"
#include "verbs/ports.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hccl::verbs {

struct PortRequest {
  std::string devices;           // HCCL_IB_HCA (base/device_list.h); empty for all
  std::optional<int> gid_index;  // HCCL_IB_GID_INDEX
  std::string interface_names;   // HCCL_SOCKET_IFNAME
};

struct UsablePort {
  std::string device;
  int number = 1;
  Gid gid;                // RoCE v2; its index fits in a queue pair's attributes
  std::uint32_t mtu = 0;  // in bytes
};

struct PortChoice {
  std::vector<UsablePort> usable;    // best first; each port at most once
  std::vector<std::string> remarks;  // one per port: chosen or rejected, and the reason
  std::string why_none;              // a clause, set if no port is usable
};

// Returns the usable ports, in order of preference. A port is usable if it is active, runs
// Ethernet, is named by the request and has a RoCE v2 GID that is an address of a local interface
// and is not link-local. If the request names a GID index, only that GID is considered; otherwise
// IPv4 is preferred to IPv6. Ports are sorted by their position in HCCL_IB_HCA. Among ports with
// the same position, ports on loopback or on container interfaces come last. Throws
// Error(hcclInvalidArgument) if HCCL_IB_HCA is malformed or matches no NIC, or if no port has a
// usable GID with the requested index, and Error(hcclSystemError) if no port that HCCL_IB_HCA names
// can be used.
[[nodiscard]] PortChoice choose_ports(const std::vector<Port>& ports, const PortRequest& request,
                                      const std::vector<Interface>& interfaces);

}  // namespace hccl::verbs
