// SPDX-License-Identifier: Apache-2.0
// The RDMA ports of this machine and their GID tables, as the devices tell them.
#pragma once

#include "verbs/gid.h"
#include "verbs/verbs_library.h"

#include <cstdint>
#include <string>
#include <vector>

namespace hccl::verbs {

struct Port {
  std::string device;
  int number = 0;          // from 1 on; 0: the device itself could not be read
  std::string unreadable;  // why it could not be read: a clause; then the rest means nothing
  std::string state;       // "active", "down", ...
  bool active = false;
  bool ethernet = false;
  std::uint32_t mtu = 0;     // the active one, in bytes
  int gid_table_length = 0;  // of which most entries are empty
  std::vector<Gid> gids;     // the others, by index
};

constexpr const char* kSysfsDevices = "/sys/class/infiniband";

// Every port of every device. Each device is opened, read and closed. Where the library cannot tell
// a GID's kind and interface they are read below `sysfs`.
[[nodiscard]] std::vector<Port> list_ports(const VerbsLibrary& library,
                                           const std::string& sysfs = kSysfsDevices);

// The bytes that the enumerator stands for; 0 for one that there is not.
[[nodiscard]] std::uint32_t bytes_of(ibv_mtu mtu);

}  // namespace hccl::verbs
