// SPDX-License-Identifier: Apache-2.0
// Sizes as people write and read them.
#include "quantities.h"

#include "text.h"

#include <cctype>
#include <cmath>
#include <cstdlib>
#include <iomanip>

namespace hccl_perf {
namespace {

constexpr const char* kSuffixes = "KMGT";
constexpr double kLargest = 9.0e18;  // below 2^63, so that sums of a few sizes do not wrap

UsageError malformed(const std::string& written) {
  return UsageError(
      text("'", written, "' is not a size; write bytes with an optional K, M, G or T, like 64M"));
}

// 1024^k for the suffix at `position`, 1 if there is none. Accepts "K", "KB" and "KiB".
double suffix_factor(const std::string& written, std::size_t position) {
  if (position == written.size()) return 1.0;
  const char letter =
      static_cast<char>(std::toupper(static_cast<unsigned char>(written[position])));
  const std::string rest = written.substr(position + 1);
  if (letter == 'B' && rest.empty()) return 1.0;
  const std::size_t power = std::string(kSuffixes).find(letter);
  if (power == std::string::npos || !(rest.empty() || rest == "B" || rest == "iB")) {
    throw malformed(written);
  }
  return std::pow(1024.0, static_cast<double>(power + 1));
}

}  // namespace

std::uint64_t parse_bytes(const std::string& written) {
  if (written.empty() || std::isdigit(static_cast<unsigned char>(written[0])) == 0) {
    throw malformed(written);
  }
  const std::size_t digits_end = written.find_first_not_of("0123456789.");
  const std::size_t end = digits_end == std::string::npos ? written.size() : digits_end;
  const std::string digits = written.substr(0, end);
  char* parsed_end = nullptr;
  const double number = std::strtod(digits.c_str(), &parsed_end);
  if (*parsed_end != '\0') throw malformed(written);
  const double bytes = number * suffix_factor(written, end);
  if (bytes > kLargest) throw UsageError(text("'", written, "' is larger than any memory"));
  return static_cast<std::uint64_t>(bytes);
}

std::string format_bytes(std::uint64_t bytes) {
  if (bytes < 1024) return text(bytes, " B");
  double value = static_cast<double>(bytes) / 1024.0;
  std::size_t power = 0;
  for (; value >= 1024.0 && power < 3; ++power) value /= 1024.0;
  std::ostringstream out;
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
    if (next <= size) break;  // from 0 by a factor, or by a step of 0
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

}  // namespace hccl_perf
