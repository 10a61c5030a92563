// SPDX-License-Identifier: Apache-2.0
// Parses a command line given as words, and looks at the error it makes.
#pragma once

#include "options.h"
#include "text.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace hccl_perf {

inline std::variant<Options, Text> parse_all(const std::vector<const char*>& words) {
  return parse_options(static_cast<int>(words.size()), words.data());
}

inline Options parse(const std::vector<const char*>& words) {
  std::vector<const char*> all = {"hccl-perf"};
  all.insert(all.end(), words.begin(), words.end());
  return std::get<Options>(parse_all(all));
}

// The message of the error these arguments make.
inline std::string error_of(const std::vector<const char*>& words) {
  try {
    static_cast<void>(parse(words));
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

inline void expect_error(const std::vector<const char*>& words, const std::string& named) {
  const std::string message = error_of(words);
  EXPECT_NE(message.find(named), std::string::npos)
      << "'" << message << "' does not name '" << named << "'";
  EXPECT_EQ(message.find('\n'), std::string::npos) << "more than one line: " << message;
}

}  // namespace hccl_perf
