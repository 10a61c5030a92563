// SPDX-License-Identifier: Apache-2.0
// Builds messages from parts, because the supported compilers do not all have <format>.
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

// Returns the value in quotes and on one line: replaces characters other than printable ASCII with
// '?', and truncates the value to 200 characters.
[[nodiscard]] std::string quoted(std::string_view value);

// Returns the description of an errno value. Thread-safe, unlike strerror().
[[nodiscard]] std::string system_error_text(int error_number);

}  // namespace hccl
