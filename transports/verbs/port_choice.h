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
// Ethernet, reports its MTU, is named by HCCL_IB_HCA and has a usable GID: a RoCE v2 GID that is an
// address of a local interface named by HCCL_SOCKET_IFNAME, is not link-local and fits into a queue
// pair's attributes. A variable that is not set names everything. If the request names a GID index,
// only that GID is considered; otherwise IPv4 is preferred to IPv6. Ports are sorted by their
// position in HCCL_IB_HCA. Among ports with the same position, those on loopback or on container
// interfaces come last, unless HCCL_SOCKET_IFNAME is set.
// Throws Error(hcclInvalidArgument) if HCCL_IB_HCA is malformed, or if ports are usable except that
// none has a usable GID with the requested index. If HCCL_IB_HCA is set without a leading ^, also
// throws Error(hcclInvalidArgument) if it matches no NIC, and Error(hcclSystemError) if none of the
// ports that it names can be used.
[[nodiscard]] PortChoice choose_ports(const std::vector<Port>& ports, const PortRequest& request,
                                      const std::vector<Interface>& interfaces);

}  // namespace hccl::verbs
