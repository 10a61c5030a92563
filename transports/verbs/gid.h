// SPDX-License-Identifier: Apache-2.0
// The address of a port as RoCE knows it: 16 bytes, an IPv6 address or an IPv4 one mapped into it.
#pragma once

#include "base/address.h"

#include <array>
#include <cstdint>
#include <string>

namespace hccl::verbs {

using GidBytes = std::array<std::uint8_t, 16>;

// One entry of a port's table.
struct Gid {
  enum class Kind : std::uint8_t { infiniband, roce_v1, roce_v2 };

  int index = 0;
  GidBytes bytes{};
  Kind kind = Kind::infiniband;
  std::string interface;  // of the network; empty: unknown
};

[[nodiscard]] bool is_ipv4(const GidBytes& gid);
[[nodiscard]] bool is_link_local(const GidBytes& gid);  // IPv6's fe80::/10
[[nodiscard]] bool is_zero(const GidBytes& gid);
[[nodiscard]] Address address_of(const GidBytes& gid);
// "10.77.0.1", "fd00::1"
[[nodiscard]] std::string to_text(const GidBytes& gid);
[[nodiscard]] const char* to_text(Gid::Kind kind);

// Why no queue pair can connect the two: a clause; empty: one can. Subnets may differ, for RoCE v2
// is routed; loopback leads to one's own network (base/process.h) alone. Both sides come to the
// same answer.
[[nodiscard]] std::string why_unreachable(const GidBytes& ours, const GidBytes& theirs,
                                          bool same_network = true);

}  // namespace hccl::verbs
