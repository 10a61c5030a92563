// SPDX-License-Identifier: Apache-2.0
// Concatenates values into a text, because some supported compilers lack <format>.
#pragma once

#include <sstream>
#include <string>
#include <string_view>

namespace hccl {

template <class... Parts>
[[nodiscard]] std::string text(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

// Returns the value in quotes, truncated to 200 characters. Replaces every character that is not
// printable ASCII with '?', so the result is a single line.
[[nodiscard]] std::string quoted(std::string_view value);

// Returns the description of an errno value. Thread-safe, unlike strerror().
[[nodiscard]] std::string system_error_text(int error_number);

}  // namespace hccl
