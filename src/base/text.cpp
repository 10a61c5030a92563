// SPDX-License-Identifier: Apache-2.0
// Quotes values and describes errno values.
#include "base/text.h"

#include <system_error>

namespace hccl {

std::string quoted(std::string_view value) {
  constexpr std::size_t kLongest = 200;
  std::string result = "\"";
  for (const char letter : value.substr(0, kLongest)) {
    const auto code = static_cast<unsigned char>(letter);
    result.push_back(code < 0x20 || code > 0x7e ? '?' : letter);
  }
  if (value.size() > kLongest) result += "...";
  return result + '"';
}

std::string system_error_text(int error_number) {
  return std::generic_category().message(error_number);
}

}  // namespace hccl
