// SPDX-License-Identifier: Apache-2.0
// Writes and reads fields byte by byte.
#include "base/fields.h"

#include <algorithm>
#include <cstring>

namespace hccl {
namespace {

constexpr std::size_t kLongestText = 4096;

}  // namespace

void erase_front(Bytes& bytes, std::size_t count) {
  const std::size_t rest = bytes.size() - count;
  std::copy(bytes.begin() + static_cast<std::ptrdiff_t>(count), bytes.end(), bytes.begin());
  explicit_bzero(bytes.data() + rest, count);
  bytes.resize(rest);
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

void WireReader::read_into(std::span<std::byte> destination) {
  std::ranges::copy(take(destination.size()), destination.begin());
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

}  // namespace hccl
