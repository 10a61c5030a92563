// SPDX-License-Identifier: Apache-2.0
// Builds strings from parts, identically in every locale. Defines the two kinds of errors that end
// a program.
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

// Thrown if the command line or the environment requests something impossible. The program prints
// one line and exits with status 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Thrown if the run has failed. The program prints one line, which names the failed rank, if there
// is one, and exits with status 1.
class RunError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace hccl_perf
