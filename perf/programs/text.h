// SPDX-License-Identifier: Apache-2.0
// Builds text from parts, the same in every locale, and the two kinds of error hccl-perf ends with.
#pragma once

#include <locale>
#include <sstream>
#include <stdexcept>
#include <string>

namespace hccl_perf {

template <class... Parts>
[[nodiscard]] std::string text(const Parts&... parts) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  (out << ... << parts);
  return out.str();
}

// The command line or the environment asks for something that cannot be done: one line, exit
// status 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The run failed: one line naming the rank, exit status 1.
class RunError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace hccl_perf
