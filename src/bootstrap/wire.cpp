// SPDX-License-Identifier: Apache-2.0
// Frame headers. Nothing here trusts a length it has read.
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
  constexpr auto kFirst = static_cast<std::uint8_t>(FrameType::greeting);
  constexpr auto kLast = static_cast<std::uint8_t>(FrameType::verdict);
  if (magic != kFrameMagic || reserved != 0 || type < kFirst || type > kLast) return std::nullopt;
  if (descriptors > kMostDescriptors || length > most) return std::nullopt;
  return FrameHeader{static_cast<FrameType>(type), descriptors, length};
}

bool may_become_hello(std::span<const std::byte> bytes) {
  WireWriter magic;
  magic.put_u32(kFrameMagic);
  const std::size_t known = std::min(bytes.size(), magic.bytes().size());
  if (!std::ranges::equal(bytes.first(known), std::span(magic.bytes()).first(known))) return false;
  if (bytes.size() < kFrameHeaderSize) return true;
  const auto header = parse_header(bytes.first<kFrameHeaderSize>(), kSmallPayload);
  return header && header->descriptors == 0 &&
         (header->type == FrameType::early_hello || header->type == FrameType::hello);
}

std::optional<std::span<const std::byte>> first_payload(std::span<const std::byte> bytes,
                                                        FrameType type) {
  if (bytes.size() < kFrameHeaderSize) return std::nullopt;
  const auto rest = bytes.subspan(kFrameHeaderSize);
  const auto header = parse_header(bytes.first<kFrameHeaderSize>(), rest.size());
  if (!header || header->type != type) return std::nullopt;
  return rest.first(header->length);
}

}  // namespace hccl::bootstrap
