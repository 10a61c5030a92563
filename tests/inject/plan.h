// SPDX-License-Identifier: Apache-2.0
// Chooses which calls to fail, and with which errors.
#pragma once

#include <string>
#include <vector>

namespace hccl::test {

// Makes the n-th call to a function in a phase of the program fail with this errno.
struct Injection {
  std::string phase;
  std::string function;
  long number = 0;
  int error = 0;

  // Returns the text that the interposer reads, such as "start/socket/1/24".
  [[nodiscard]] std::string to_text() const;
};

struct CallCount {
  std::string phase;
  std::string function;
  long calls = 0;
};

// Returns the errno values with which the function can fail in practice, or none if its calls are
// never made to fail.
[[nodiscard]] const std::vector<int>& plausible_errors(const std::string& function);

// Returns every injection into the first calls of each function in each phase: 10 calls, or 40 in
// an exhaustive run.
[[nodiscard]] std::vector<Injection> injections_into(const std::vector<CallCount>& counts);

}  // namespace hccl::test
