// SPDX-License-Identifier: Apache-2.0
// Searches texts for parts that tests expect.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>

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

inline void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    EXPECT_TRUE(contains(text, part)) << "'" << part << "' is not in: " << text;
}

// Expects that the text is a single line that contains each of `parts`.
inline void expect_line(const std::string& text, const std::vector<std::string>& parts) {
  EXPECT_EQ(count_of(text, "\n"), 1U) << text;
  expect_parts(text, parts);
}

}  // namespace hccl::test
