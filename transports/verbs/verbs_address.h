// SPDX-License-Identifier: Apache-2.0
// The address that a rank publishes: the GID of its RDMA port, and the TCP port at which the rank
// accepts connections on the same address.
#pragma once

#include "base/address.h"
#include "base/fields.h"
#include "verbs/gid.h"

#include <cstdint>
#include <optional>
#include <span>

namespace hccl::verbs {

struct VerbsAddress {
  std::uint64_t network = 0;  // the network namespace; loopback works only within it
  GidBytes gid{};
  std::uint16_t tcp_port = 0;

  friend bool operator==(const VerbsAddress&, const VerbsAddress&) = default;
};

[[nodiscard]] Bytes serialize(const VerbsAddress& address);
// Parses a serialised address. Returns nothing if the bytes are malformed or come from another
// version.
[[nodiscard]] std::optional<VerbsAddress> parse_verbs_address(std::span<const std::byte> bytes);

// Returns the TCP address. The GID of a RoCE v2 port is also an address of its network interface.
[[nodiscard]] Address tcp_address(const VerbsAddress& address);

}  // namespace hccl::verbs
