// SPDX-License-Identifier: Apache-2.0
// Chooses, encodes and orders addresses. Uses no sockets.
#include "tcp/addresses.h"

#include "base/error.h"
#include "base/process.h"
#include "base/sha256.h"
#include "base/text.h"

#include <algorithm>
#include <cstring>

namespace hccl::tcp {
namespace {

constexpr std::uint8_t kFormat = 1;
constexpr std::size_t kV4Bytes = 4;
constexpr std::size_t kV6Bytes = 16;

// Returns the reason why the address is not offered to other ranks, or an empty string if it is.
std::string objection_to(const Interface& candidate, const std::string& names,
                         bool have_reachable) {
  if (candidate.address.v6 && candidate.address.is_link_local()) {
    return "link-local addresses cannot be used without a scope";
  }
  if (!names.empty()) {
    return is_named(candidate, names) ? ""
                                      : text("HCCL_SOCKET_IFNAME=", names, " does not name it");
  }
  if (candidate.loopback) {
    return have_reachable ? "other hosts cannot reach it" : "";
  }
  if (is_virtual(candidate)) {
    return "a bridge or tunnel for containers or VMs; to use it, name it in HCCL_SOCKET_IFNAME";
  }
  return "";
}

bool same_subnet(const OfferedAddress& a, const OfferedAddress& b) {
  if (a.address.v6 != b.address.v6 || a.prefix_length != b.prefix_length) return false;
  int bits = a.prefix_length;
  for (std::size_t i = 0; bits > 0 && i < a.address.bytes.size(); ++i, bits -= 8) {
    const int kept = std::min(bits, 8);
    const auto mask = static_cast<std::uint8_t>(0xff << (8 - kept));
    if (((a.address.bytes[i] ^ b.address.bytes[i]) & mask) != 0) return false;
  }
  return true;
}

void put(WireWriter& writer, const OfferedAddress& offered) {
  const std::size_t size = offered.address.v6 ? kV6Bytes : kV4Bytes;
  writer.put_u8(static_cast<std::uint8_t>(size));
  writer.put_u8(static_cast<std::uint8_t>(offered.prefix_length));
  writer.put_u16(offered.address.port);
  writer.put_bytes(std::as_bytes(std::span(offered.address.bytes).first(size)));
}

std::optional<OfferedAddress> take(WireReader& reader) {
  OfferedAddress offered;
  const std::size_t size = reader.u8();
  offered.prefix_length = reader.u8();
  offered.address.port = reader.u16();
  offered.address.v6 = size == kV6Bytes;
  if (size != kV4Bytes && size != kV6Bytes) return std::nullopt;
  const Bytes bytes = reader.bytes(size);
  if (!reader.ok() || offered.address.port == 0) return std::nullopt;
  if (offered.prefix_length > static_cast<int>(8 * size)) return std::nullopt;
  std::memcpy(offered.address.bytes.data(), bytes.data(), size);
  return offered;
}

}  // namespace

AddressChoice choose_addresses(const std::vector<Interface>& interfaces, const std::string& names) {
  const bool have_reachable = std::ranges::any_of(interfaces, [](const Interface& entry) {
    return !entry.loopback && !is_virtual(entry) && !entry.address.is_link_local();
  });
  AddressChoice choice;
  for (const bool v6 : {false, true}) {
    for (const Interface& entry : interfaces) {
      if (entry.address.v6 != v6) continue;
      std::string objection = objection_to(entry, names, have_reachable);
      if (objection.empty() && choice.offered.size() == kMaxOffered) {
        objection = text(kMaxOffered, " addresses are offered already");
      }
      choice.remarks.push_back(
          text(entry.name, ' ', entry.address.host_text(),
               objection.empty() ? " is offered" : " is not offered: ", objection));
      if (objection.empty()) choice.offered.push_back(entry);
    }
  }
  if (!choice.offered.empty()) return choice;
  if (!names.empty()) refuse_interface_names(interfaces, names);
  throw Error(
      hcclSystemError,
      interfaces.empty()
          ? "no network interface is up, not even loopback; bring one up: ip link set lo up"
          : "no network interface is up that others could connect to; bring one up, or name "
            "one in HCCL_SOCKET_IFNAME");
}

Bytes serialize(const TcpAddresses& published) {
  WireWriter writer;
  writer.put_u8(kFormat);
  writer.put_u64(published.network);
  writer.put_u8(static_cast<std::uint8_t>(published.addresses.size()));
  for (const OfferedAddress& offered : published.addresses) put(writer, offered);
  return writer.take();
}

std::optional<TcpAddresses> parse_tcp_addresses(std::span<const std::byte> bytes) {
  WireReader reader(bytes);
  TcpAddresses published;
  if (reader.u8() != kFormat) return std::nullopt;
  published.network = reader.u64();
  const std::size_t count = reader.u8();
  if (count == 0 || count > kMaxOffered) return std::nullopt;
  for (std::size_t i = 0; i < count; ++i) {
    const auto offered = take(reader);
    if (!offered) return std::nullopt;
    published.addresses.push_back(*offered);
  }
  if (!reader.complete()) return std::nullopt;
  return published;
}

std::vector<Address> usable_addresses(const TcpAddresses& ours, const TcpAddresses& theirs) {
  std::vector<OfferedAddress> usable;
  for (const OfferedAddress& offered : theirs.addresses) {
    const bool same_family = std::ranges::any_of(ours.addresses, [&](const OfferedAddress& own) {
      return own.address.v6 == offered.address.v6;
    });
    const bool elsewhere = offered.address.is_loopback() && ours.network != theirs.network;
    if (same_family && !elsewhere) usable.push_back(offered);
  }
  std::stable_partition(usable.begin(), usable.end(), [&](const OfferedAddress& offered) {
    return std::ranges::any_of(
        ours.addresses, [&](const OfferedAddress& own) { return same_subnet(own, offered); });
  });
  std::vector<Address> addresses;
  addresses.reserve(usable.size());
  for (const OfferedAddress& offered : usable) addresses.push_back(offered.address);
  return addresses;
}

}  // namespace hccl::tcp
