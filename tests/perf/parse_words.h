// SPDX-License-Identifier: Apache-2.0
// Helpers that parse a command line's words as hccl-perf does.
#pragma once

#include "options.h"
#include "run_program.h"
#include "text.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace hccl_perf {

inline std::variant<Options, Text> parse_all(const CommandLine& words) {
  std::vector<const char*> pointers;
  for (const std::string& word : words) pointers.push_back(word.c_str());
  return parse_options(static_cast<int>(pointers.size()), pointers.data());
}

inline Options parse(const CommandLine& words) {
  CommandLine all{"hccl-perf"};
  all.append(words);
  return std::get<Options>(parse_all(all));
}

// Parses the arguments. Returns "accepted", or the text of the UsageError.
inline std::string error_of(const CommandLine& words) {
  try {
    static_cast<void>(parse(words));
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

inline void expect_error(const CommandLine& words, const std::string& named) {
  const std::string message = error_of(words);
  EXPECT_NE(message.find(named), std::string::npos)
      << "'" << message << "' does not name '" << named << "'";
  EXPECT_EQ(message.find('\n'), std::string::npos) << "more than one line: " << message;
}

}  // namespace hccl_perf
