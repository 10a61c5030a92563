// SPDX-License-Identifier: Apache-2.0
// Parses and formats sizes and times.
#include "quantities.h"

#include "text.h"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <iomanip>
#include <optional>

namespace hccl_perf {
namespace {

constexpr const char* kSuffixes = "KMGT";
constexpr double kLargest = 9.0e18;  // below 2^63, so that the sum of two sizes does not wrap

UsageError malformed(const std::string& written) {
  return UsageError(
      text("'", written,
           "' is not a size; write a number of bytes, optionally with K, M, G or T, such as 64M"));
}

// Returns the factor of a suffix: 1024 for "K", "KB" or "KiB" in either case, 1024^2 for "M", and
// so on. No suffix and "B" have the factor 1.
double suffix_factor(const std::string& written, std::string suffix) {
  for (char& letter : suffix)
    letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  if (suffix.empty() || suffix == "B") return 1.0;
  const std::string rest = suffix.substr(1);
  const std::size_t power = std::string(kSuffixes).find(suffix[0]);
  if (power == std::string::npos || !(rest.empty() || rest == "B" || rest == "IB")) {
    throw malformed(written);
  }
  return std::pow(1024.0, static_cast<double>(power + 1));
}

struct Parsed {
  double number = 0;
  std::string suffix;
};

// Splits a string such as "1.5M" after the number. Returns nothing if the string does not begin
// with a number.
std::optional<Parsed> split_number(const std::string& written) {
  if (written.empty() || std::isdigit(static_cast<unsigned char>(written[0])) == 0)
    return std::nullopt;
  const std::size_t digits_end = written.find_first_not_of("0123456789.");
  const std::size_t length = digits_end == std::string::npos ? written.size() : digits_end;
  Parsed parsed;
  const char* const end = written.data() + length;
  const auto [stopped, error] =
      std::from_chars(written.data(), end, parsed.number, std::chars_format::fixed);
  if (stopped != end || error != std::errc()) return std::nullopt;
  parsed.suffix = written.substr(length);
  return parsed;
}

}  // namespace

std::uint64_t parse_bytes(const std::string& written) {
  const std::optional<Parsed> parsed = split_number(written);
  if (!parsed) throw malformed(written);
  const double bytes = parsed->number * suffix_factor(written, parsed->suffix);
  if (bytes > kLargest)
    throw UsageError(text("'", written, "' is too large; the maximum is 9.0e18 bytes"));
  return static_cast<std::uint64_t>(bytes);
}

double parse_seconds(const std::string& written) {
  const std::optional<Parsed> parsed = split_number(written);
  const std::string units = "smh";
  constexpr double kMost = 1.0e7;
  const std::size_t power =
      parsed && parsed->suffix.size() == 1 ? units.find(parsed->suffix) : std::string::npos;
  if (!parsed || (power == std::string::npos && !parsed->suffix.empty())) {
    throw UsageError(
        text("--timeout: '", written,
             "' is not a time; write a number of seconds, or a time such as 30s, 5m or 2h"));
  }
  const double seconds =
      parsed->number * (parsed->suffix.empty() ? 1.0 : std::pow(60.0, static_cast<double>(power)));
  if (seconds > kMost)
    throw UsageError(text("--timeout: '", written, "' is longer than ", kMost, " s"));
  return seconds;
}

std::string format_bytes(std::uint64_t bytes) {
  if (bytes < 1024) return text(bytes, " B");
  double value = static_cast<double>(bytes) / 1024.0;
  std::size_t power = 0;
  for (; value >= 1024.0 && power < 3; ++power) value /= 1024.0;
  std::ostringstream out;
  out.imbue(std::locale::classic());
  const bool whole = value == std::floor(value);
  out << std::fixed << std::setprecision(whole ? 0 : 1) << value << ' ' << kSuffixes[power] << "iB";
  return out.str();
}

std::vector<std::uint64_t> size_sweep(std::uint64_t first, std::uint64_t last, std::uint64_t step,
                                      std::uint64_t factor) {
  std::vector<std::uint64_t> sizes;
  std::uint64_t size = first;
  while (size <= last) {
    sizes.push_back(size);
    const std::uint64_t next = factor > 1 ? size * factor : size + step;
    if (next <= size) break;  // 0 times a factor, a step of 0, or a result that has wrapped
    size = next;
  }
  return sizes;
}

std::string format_ranks(const std::vector<int>& ranks) {
  std::string written;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (!written.empty()) written += ',';
    written += std::to_string(ranks[i]);
    if (last > i) written += text(last == i + 1 ? "," : "-", ranks[last]);
    i = last + 1;
  }
  return written;
}

std::string decimal(double value, int digits) {
  std::array<char, 400> written{};  // the largest double has 309 digits before the point
  const auto [end, error] = std::to_chars(written.data(), written.data() + written.size(), value,
                                          std::chars_format::fixed, digits);
  return {written.data(), error == std::errc() ? end : written.data()};
}

}  // namespace hccl_perf
