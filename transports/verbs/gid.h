// SPDX-License-Identifier: Apache-2.0
// A GID is the address of a RoCE port. Its 16 bytes are an IPv6 address or an IPv4-mapped IPv6
// address.
#pragma once

#include "base/address.h"

#include <array>
#include <cstdint>
#include <string>

namespace hccl::verbs {

using GidBytes = std::array<std::uint8_t, 16>;

// An entry of a port's GID table.
struct Gid {
  enum class Kind : std::uint8_t { infiniband, roce_v1, roce_v2 };

  int index = 0;
  GidBytes bytes{};
  Kind kind = Kind::infiniband;
  std::string interface;  // the network interface; empty if unknown
};

[[nodiscard]] bool is_ipv4(const GidBytes& gid);
[[nodiscard]] bool is_link_local(const GidBytes& gid);  // IPv6's fe80::/10
[[nodiscard]] bool is_zero(const GidBytes& gid);
[[nodiscard]] Address address_of(const GidBytes& gid);
// Returns a string such as "10.77.0.1" or "fd00::1".
[[nodiscard]] std::string to_text(const GidBytes& gid);
[[nodiscard]] const char* to_text(Gid::Kind kind);

// Returns the reason why no queue pair can connect the two GIDs, as a clause, or an empty string if
// one can. The subnets may differ, because RoCE v2 is routed. Loopback works only within one
// network namespace: `same_network` states whether network_number() of base/process.h is the same
// for both ends. Either both ends get an empty string or neither does.
[[nodiscard]] std::string why_unreachable(const GidBytes& ours, const GidBytes& theirs,
                                          bool same_network = true);

}  // namespace hccl::verbs
