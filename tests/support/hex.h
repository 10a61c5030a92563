// SPDX-License-Identifier: Apache-2.0
// Conversions between text and bytes for tests of hashes and keys.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace hccl::test {

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

inline std::string hex(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string result;
  for (const std::byte byte : bytes) {
    result += kDigits[std::to_integer<std::size_t>(byte >> 4)];
    result += kDigits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return result;
}

}  // namespace hccl::test
