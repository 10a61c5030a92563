// SPDX-License-Identifier: Apache-2.0
#include "verbs/verbs_address.h"

#include <algorithm>

namespace hccl::verbs {
namespace {

constexpr std::uint8_t kAddressFormat = 0x56;  // differs from those of other transports

}  // namespace

Bytes serialize(const VerbsAddress& address) {
  WireWriter writer;
  writer.put_u8(kAddressFormat);
  writer.put_u64(address.network);
  writer.put_bytes(std::as_bytes(std::span(address.gid)));
  writer.put_u16(address.tcp_port);
  return writer.take();
}

std::optional<VerbsAddress> parse_verbs_address(std::span<const std::byte> bytes) {
  WireReader reader(bytes);
  VerbsAddress address;
  const bool known = reader.u8() == kAddressFormat;
  address.network = reader.u64();
  const auto gid = reader.array<sizeof(GidBytes)>();
  std::ranges::transform(gid, address.gid.begin(),
                         [](std::byte byte) { return std::to_integer<std::uint8_t>(byte); });
  address.tcp_port = reader.u16();
  if (!known || !reader.complete() || address.tcp_port == 0) return std::nullopt;
  return address;
}

Address tcp_address(const VerbsAddress& address) {
  Address found = address_of(address.gid);
  found.port = address.tcp_port;
  return found;
}

}  // namespace hccl::verbs
