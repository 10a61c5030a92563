// SPDX-License-Identifier: Apache-2.0
// Which of a machine's addresses a rank is reached at, and how that is told to the others.
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
  std::vector<Interface> offered;    // IPv4 before IPv6, at most kMostOffered
  std::vector<std::string> remarks;  // one for each address: whether it is offered, and why not
};

constexpr std::size_t kMostOffered = 8;

// With names (HCCL_SOCKET_IFNAME), the addresses of the interfaces that they name; without, of all
// that other hosts may reach, or of loopback if there is no such. Throws
// Error(hcclInvalidArgument) where names match nothing, Error(hcclSystemError) where there is none.
[[nodiscard]] AddressChoice choose_addresses(const std::vector<Interface>& interfaces,
                                             const std::string& names);

struct OfferedAddress {
  Address address;
  int prefix_length = 0;

  friend bool operator==(const OfferedAddress&, const OfferedAddress&) = default;
};

// The address that a rank publishes: the network it is in, so that loopback is not mistaken for a
// way to another machine, and its addresses.
struct Offer {
  std::uint64_t network = 0;
  std::vector<OfferedAddress> addresses;

  friend bool operator==(const Offer&, const Offer&) = default;
};

[[nodiscard]] Bytes serialize(const Offer& offer);
[[nodiscard]] std::optional<Offer> parse_offer(std::span<const std::byte> bytes);

// The addresses of `theirs` that can be tried from `ours`, those in a subnet of ours first.
[[nodiscard]] std::vector<Address> usable_addresses(const Offer& ours, const Offer& theirs);

}  // namespace hccl::tcp
