// SPDX-License-Identifier: Apache-2.0
// The RDMA ports of this machine and their GID tables, as the NICs report them.
#pragma once

#include "verbs/gid.h"
#include "verbs/verbs_library.h"

#include <cstdint>
#include <string>
#include <vector>

namespace hccl::verbs {

struct Port {
  std::string device;
  int number = 0;          // from 1; 0 if the NIC itself could not be read
  std::string unreadable;  // why the port could not be read, as a clause; the rest is then unset
  std::string state;       // "active", "down", ...
  bool active = false;
  bool ethernet = false;
  std::uint32_t mtu = 0;     // the active MTU, in bytes
  int gid_table_length = 0;  // including empty entries
  std::vector<Gid> gids;     // the entries that are not empty, in order of index
};

constexpr const char* kSysfsDevices = "/sys/class/infiniband";

// Returns every port of every NIC. Opens, reads and closes each NIC. Reads the kind and the
// interface of a GID from `sysfs` if libibverbs does not report them. A NIC that cannot be read is
// represented by one unreadable port, and a failure to list the NICs by one without a device.
[[nodiscard]] std::vector<Port> list_ports(const VerbsLibrary& library,
                                           const std::string& sysfs = kSysfsDevices);

// Returns `mtu` in bytes, or 0 for an unknown value.
[[nodiscard]] std::uint32_t bytes_of(ibv_mtu mtu);

}  // namespace hccl::verbs
