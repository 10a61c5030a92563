// SPDX-License-Identifier: Apache-2.0
// The list of RDMA devices in HCCL_IB_HCA, in the notation of NCCL_IB_HCA: comma-separated prefixes
// of device names, each optionally with a port ("mlx5_0:1"). A leading "=" requires exact names. A
// leading "^" or "^=" excludes the listed devices.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hccl {

struct DeviceList {
  struct Entry {
    std::string name;
    std::optional<int> port;  // none: any port
  };

  bool all_but = false;
  bool exact = false;
  std::vector<Entry> entries;  // empty: no list is set, so every device matches

  // Returns the index of the first entry that matches, even if `all_but` is set. If `port` is 0,
  // ignores the ports of the entries.
  [[nodiscard]] std::optional<std::size_t> position_of(std::string_view device, int port) const;
  [[nodiscard]] bool names(std::string_view device, int port) const;
};

// Parses a list. Returns an empty list for an empty text, and nothing for a malformed one.
[[nodiscard]] std::optional<DeviceList> parse_device_list(std::string_view text);

}  // namespace hccl
