// SPDX-License-Identifier: Apache-2.0
// Which RDMA devices HCCL_IB_HCA names, in the notation that users know from NCCL_IB_HCA: names
// separated by commas, each a prefix and perhaps with a port ("mlx5_0:1"); "=" before the list: the
// names are whole ones; "^" before that: all but these.
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
    std::optional<int> port;  // none: any
  };

  bool all_but = false;
  bool exact = false;
  std::vector<Entry> entries;  // none: no list was given, which names every device

  // The place of the first entry that matches, whatever `all_but` says. Port 0: any of the device.
  [[nodiscard]] std::optional<std::size_t> place_of(std::string_view device, int port) const;
  [[nodiscard]] bool names(std::string_view device, int port) const;
};

// Nothing for a text that is not of the form. The empty text is the empty list.
[[nodiscard]] std::optional<DeviceList> parse_device_list(std::string_view text);

}  // namespace hccl
