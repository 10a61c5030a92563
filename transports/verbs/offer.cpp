// SPDX-License-Identifier: Apache-2.0
#include "verbs/offer.h"

#include <algorithm>

namespace hccl::verbs {
namespace {

constexpr std::uint8_t kOfferFormat = 0x56;  // unlike those of other transports

}  // namespace

Bytes serialize(const Offer& offer) {
  WireWriter writer;
  writer.put_u8(kOfferFormat);
  writer.put_u64(offer.network);
  writer.put_bytes(std::as_bytes(std::span(offer.gid)));
  writer.put_u16(offer.tcp_port);
  return writer.take();
}

std::optional<Offer> parse_offer(std::span<const std::byte> bytes) {
  WireReader reader(bytes);
  Offer offer;
  const bool known = reader.u8() == kOfferFormat;
  offer.network = reader.u64();
  const auto gid = reader.array<sizeof(GidBytes)>();
  std::ranges::transform(gid, offer.gid.begin(),
                         [](std::byte byte) { return std::to_integer<std::uint8_t>(byte); });
  offer.tcp_port = reader.u16();
  if (!known || !reader.complete() || offer.tcp_port == 0) return std::nullopt;
  return offer;
}

Address meeting_point(const Offer& offer) {
  Address address = address_of(offer.gid);
  address.port = offer.tcp_port;
  return address;
}

}  // namespace hccl::verbs
