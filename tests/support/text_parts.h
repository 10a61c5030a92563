// SPDX-License-Identifier: Apache-2.0
// Parts of texts that tests look for.
#pragma once

#include <cstddef>
#include <string>

namespace hccl::test {

[[nodiscard]] inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

[[nodiscard]] inline std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

}  // namespace hccl::test
