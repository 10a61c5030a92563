// SPDX-License-Identifier: Apache-2.0
// Frame headers and fields. Nothing here trusts a length it has read.
#include "bootstrap/wire.h"

#include <algorithm>

namespace hccl::bootstrap {
namespace {

constexpr std::uint32_t kFrameMagic = 0x4c434348;  // "HCCL"
constexpr std::size_t kLongestText = 4096;

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
  constexpr auto kLast = static_cast<std::uint8_t>(FrameType::control_block);
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

void WireWriter::put_bytes(std::span<const std::byte> bytes) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

void WireWriter::put_text(const std::string& value) {
  const std::size_t length = std::min(value.size(), kLongestText);
  put_u16(static_cast<std::uint16_t>(length));
  put_bytes(std::as_bytes(std::span(value.data(), length)));
}

void WireWriter::put_number(std::uint64_t value, int size) {
  for (int i = 0; i < size; ++i) bytes_.push_back(static_cast<std::byte>(value >> (8 * i) & 0xff));
}

std::string WireReader::text(std::size_t most) {
  const std::size_t length = u16();
  if (length > most) ok_ = false;
  std::string result;
  for (const std::byte byte : take(length)) {
    const auto letter = std::to_integer<unsigned char>(byte);
    result.push_back(letter < 0x20 || letter == 0x7f ? '?' : static_cast<char>(letter));
  }
  return result;
}

Bytes WireReader::bytes(std::size_t count) {
  const auto bytes = take(count);
  return {bytes.begin(), bytes.end()};
}

Bytes WireReader::remainder() { return bytes(rest_.size()); }

std::span<const std::byte> WireReader::take(std::size_t count) {
  if (!ok_ || count > rest_.size()) {
    ok_ = false;
    return {};
  }
  const auto result = rest_.first(count);
  rest_ = rest_.subspan(count);
  return result;
}

std::uint64_t WireReader::number(std::size_t size) {
  std::uint64_t value = 0;
  std::size_t shift = 0;
  for (const std::byte byte : take(size)) {
    value |= std::to_integer<std::uint64_t>(byte) << shift;
    shift += 8;
  }
  return value;
}

}  // namespace hccl::bootstrap
