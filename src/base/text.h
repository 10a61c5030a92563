// SPDX-License-Identifier: Apache-2.0
// Builds messages from parts; <format> is not in the compilers we support.
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

// In quotes and on one line whatever it holds: what is not printable ASCII becomes '?', and what is
// longer than 200 characters is cut.
[[nodiscard]] std::string quoted(std::string_view value);

// strerror without its shared buffer.
[[nodiscard]] std::string system_error_text(int error_number);

}  // namespace hccl
