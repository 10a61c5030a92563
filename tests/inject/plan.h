// SPDX-License-Identifier: Apache-2.0
// Which calls are made to fail, and how.
#pragma once

#include <string>
#include <vector>

namespace hccl::test {

// The n-th call of a function in a phase of the program fails with this errno.
struct Injection {
  std::string phase;
  std::string function;
  long number = 0;
  int error = 0;

  // "start/socket/1/24", as the interposer reads it.
  [[nodiscard]] std::string to_text() const;
};

struct CallCount {
  std::string phase;
  std::string function;
  long calls = 0;
};

// The errors that a call of this function may meet in practice; empty for one that the plan leaves
// alone.
[[nodiscard]] const std::vector<int>& plausible_errors(const std::string& function);

// Returns every injection into the first calls of each function in each phase.
[[nodiscard]] std::vector<Injection> injections_into(const std::vector<CallCount>& counts);

}  // namespace hccl::test
