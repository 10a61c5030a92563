// SPDX-License-Identifier: Apache-2.0
// Chooses the addresses at which a rank can be reached, and encodes them for publication.
#pragma once

#include "base/address.h"
#include "base/fields.h"
#include "base/interfaces.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace hccl::tcp {

struct AddressChoice {
  std::vector<Interface> offered;    // IPv4 before IPv6, at most kMaxOffered
  std::vector<std::string> remarks;  // one per address: offered, or the reason why not
};

constexpr std::size_t kMaxOffered = 8;

// Chooses the addresses that are offered to other ranks. Never offers link-local IPv6 addresses.
// Otherwise offers the addresses of the interfaces whose names start with one of the prefixes in
// `names` (HCCL_SOCKET_IFNAME). If `names` is empty, uses all interfaces that are neither loopback
// nor virtual (is_virtual()) or, if there is none, loopback. If no address can be offered, calls
// refuse_interface_names(), or if `names` is empty, throws Error(hcclSystemError).
[[nodiscard]] AddressChoice choose_addresses(const std::vector<Interface>& interfaces,
                                             const std::string& names);

struct OfferedAddress {
  Address address;
  int prefix_length = 0;

  friend bool operator==(const OfferedAddress&, const OfferedAddress&) = default;
};

// The addresses that a rank publishes, and the number of its network namespace. Without the number,
// a peer could mistake the rank's loopback address for one on the peer's machine.
struct TcpAddresses {
  std::uint64_t network = 0;
  std::vector<OfferedAddress> addresses;

  friend bool operator==(const TcpAddresses&, const TcpAddresses&) = default;
};

[[nodiscard]] Bytes serialize(const TcpAddresses& published);
[[nodiscard]] std::optional<TcpAddresses> parse_tcp_addresses(std::span<const std::byte> bytes);

// Returns the addresses in `theirs` that a rank with the addresses `ours` can try to reach. Those
// in a subnet of one of `ours` come first.
[[nodiscard]] std::vector<Address> usable_addresses(const TcpAddresses& ours,
                                                    const TcpAddresses& theirs);

}  // namespace hccl::tcp
