// SPDX-License-Identifier: Apache-2.0
// Strict parsers for the values of settings. A parser returns nothing unless the whole text is
// valid.
#pragma once

#include <algorithm>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace hccl {

[[nodiscard]] inline std::string lower(std::string_view value) {
  std::string result(value);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return result;
}

// Parses all of `value` as a decimal number: digits only, no sign, no space, no overflow.
[[nodiscard]] inline std::optional<std::uint64_t> parse_number(std::string_view value) {
  std::uint64_t number = 0;
  const char* end = value.data() + value.size();
  const auto [rest, error] = std::from_chars(value.data(), end, number);
  if (value.empty() || error != std::errc() || rest != end) return std::nullopt;
  return number;
}

[[nodiscard]] inline bool printable(std::string_view value) {
  return std::all_of(value.begin(), value.end(),
                     [](unsigned char letter) { return std::isprint(letter) != 0; });
}

struct HostAndPort {
  std::string host;  // without brackets, never empty
  std::uint16_t port = 0;
};

// Parses "host:port" with a port from 1 to 65535. The last colon separates the two. An IPv6 host
// may be in brackets.
[[nodiscard]] inline std::optional<HostAndPort> parse_host_and_port(std::string_view value) {
  const std::size_t colon = value.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto port = parse_number(value.substr(colon + 1));
  if (!port || *port == 0 || *port > 65535) return std::nullopt;
  std::string_view host = value.substr(0, colon);
  if (host.starts_with('[') != host.ends_with(']')) return std::nullopt;
  if (host.starts_with('[') && host.size() > 1) host = host.substr(1, host.size() - 2);
  if (host.empty() || !printable(host)) return std::nullopt;
  if (host.find_first_of(" /[]") != std::string_view::npos) return std::nullopt;
  return HostAndPort{std::string(host), static_cast<std::uint16_t>(*port)};
}

// Parses seconds, such as "30" or "0.5". Rounds up to whole milliseconds, so that a small limit
// does not become 0, which means no limit.
[[nodiscard]] inline std::optional<std::chrono::milliseconds> parse_seconds(
    std::string_view value) {
  constexpr std::uint64_t kMostSeconds = 1'000'000'000;
  const std::size_t point = value.find('.');
  const auto whole = parse_number(value.substr(0, point));
  if (!whole || *whole > kMostSeconds) return std::nullopt;
  std::uint64_t thousandths = 0;
  if (point != std::string_view::npos) {
    const std::string_view digits = value.substr(point + 1);
    if (digits.empty() || digits.size() > 9) return std::nullopt;
    const auto fraction = parse_number(digits);
    if (!fraction) return std::nullopt;
    std::uint64_t scale = 1;
    for (std::size_t digit = 0; digit < digits.size(); ++digit) scale *= 10;
    thousandths = (*fraction * 1000 + scale - 1) / scale;
  }
  return std::chrono::milliseconds(static_cast<std::int64_t>(*whole * 1000 + thousandths));
}

// Parses a number with an optional binary suffix: K, KB or KiB, and likewise for M, G and T.
// Ignores the case of the suffix.
[[nodiscard]] inline std::optional<std::uint64_t> parse_bytes(std::string_view value) {
  const std::size_t digits = std::min(value.find_first_not_of("0123456789"), value.size());
  const auto number = parse_number(value.substr(0, digits));
  if (!number) return std::nullopt;
  std::string suffix = lower(value.substr(digits));
  if (suffix.empty()) return number;
  const std::size_t power = std::string_view("kmgt").find(suffix.front());
  suffix.erase(0, 1);
  if (power == std::string_view::npos) return std::nullopt;
  if (!suffix.empty() && suffix != "b" && suffix != "ib") return std::nullopt;
  const auto shift = static_cast<unsigned>(10 * (power + 1));
  if (*number > std::numeric_limits<std::uint64_t>::max() >> shift) return std::nullopt;
  return *number << shift;
}

// Parses 0, 1, true or false, in any letter case.
[[nodiscard]] inline std::optional<bool> parse_flag(std::string_view value) {
  const std::string word = lower(value);
  if (word == "1" || word == "true") return true;
  if (word == "0" || word == "false") return false;
  return std::nullopt;
}

}  // namespace hccl
