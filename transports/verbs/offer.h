// SPDX-License-Identifier: Apache-2.0
// The address that a rank publishes: that of its RDMA port, and where it is met over TCP at that
// address.
#pragma once

#include "base/address.h"
#include "base/fields.h"
#include "verbs/gid.h"

#include <cstdint>
#include <optional>
#include <span>

namespace hccl::verbs {

struct Offer {
  std::uint64_t network = 0;  // where loopback is the same
  GidBytes gid{};
  std::uint16_t tcp_port = 0;

  friend bool operator==(const Offer&, const Offer&) = default;
};

[[nodiscard]] Bytes serialize(const Offer& offer);
// Nothing if no rank of this version publishes that.
[[nodiscard]] std::optional<Offer> parse_offer(std::span<const std::byte> bytes);

// The GID of a RoCE v2 port is an address of its network interface.
[[nodiscard]] Address meeting_point(const Offer& offer);

}  // namespace hccl::verbs
