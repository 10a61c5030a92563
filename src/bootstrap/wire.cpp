// SPDX-License-Identifier: Apache-2.0
// Encodes and parses frame headers. Checks every length that it reads.
#include "bootstrap/wire.h"

#include <algorithm>

namespace hccl::bootstrap {
namespace {

constexpr std::uint32_t kFrameMagic = 0x4c434348;  // "HCCL"

}  // namespace

Bytes encode_frame(FrameType type, std::span<const std::byte> payload, std::size_t descriptors) {
  WireWriter writer;
  writer.put_u32(kFrameMagic);
  writer.put_u8(static_cast<std::uint8_t>(type));
  writer.put_u8(static_cast<std::uint8_t>(descriptors));
  writer.put_u16(0);
  writer.put_u32(static_cast<std::uint32_t>(payload.size()));
  writer.put_bytes(payload);
  return writer.take();
}

std::optional<FrameHeader> parse_header(std::span<const std::byte, kFrameHeaderSize> bytes,
                                        std::size_t most) {
  WireReader reader(bytes);
  const std::uint32_t magic = reader.u32();
  const std::uint8_t type = reader.u8();
  const std::uint8_t descriptors = reader.u8();
  const std::uint16_t reserved = reader.u16();
  const std::uint32_t length = reader.u32();
  constexpr auto kFirst = static_cast<std::uint8_t>(FrameType::hello);
  constexpr auto kLast = static_cast<std::uint8_t>(FrameType::missing);
  if (magic != kFrameMagic || reserved != 0 || type < kFirst || type > kLast) return std::nullopt;
  if (descriptors > kMostDescriptors || length > most) return std::nullopt;
  return FrameHeader{static_cast<FrameType>(type), descriptors, length};
}

void put_address(WireWriter& writer, const Address& address) {
  writer.put_u8(address.v6 ? 1 : 0);
  writer.put_u8(0);
  writer.put_u16(address.port);
  writer.put_u32(address.scope);
  writer.put_bytes(std::as_bytes(std::span(address.bytes)));
}

std::optional<Address> read_address(WireReader& reader) {
  Address address;
  const std::uint8_t v6 = reader.u8();
  const std::uint8_t reserved = reader.u8();
  address.port = reader.u16();
  address.scope = reader.u32();
  const auto bytes = reader.array<sizeof(address.bytes)>();
  std::ranges::transform(bytes, address.bytes.begin(),
                         [](std::byte byte) { return std::to_integer<std::uint8_t>(byte); });
  address.v6 = v6 == 1;
  if (!reader.ok() || v6 > 1 || reserved != 0) return std::nullopt;
  return address;
}

}  // namespace hccl::bootstrap
