// SPDX-License-Identifier: Apache-2.0
// A run of two ranks, in which a system call of one rank, the victim, is made to fail.
#pragma once

#include "plan.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace hccl::test {

enum class Layout { one_node, two_nodes, rings };  // rings: one node with HCCL_TRANSPORT=shm

struct Pairing {
  Layout layout = Layout::one_node;
  int victim = 0;
};

[[nodiscard]] const char* name_of(Layout layout);

struct Result {
  std::array<int, 2> statuses{};  // as waitpid() returns them
  bool hung = false;              // ranks had to be killed
  std::string output;             // stderr of both ranks

  // Returns a clause that describes the defect in the run, or "" if each rank either succeeded with
  // the right data or got an error with a text from a call.
  [[nodiscard]] std::string defect() const;
  [[nodiscard]] bool succeeded(int rank) const;
};

// Runs both ranks with the injection. Thread safety: any thread.
[[nodiscard]] Result run(const Pairing& pairing, const Injection& injection);
// Runs both ranks without an injection and returns the victim's calls. Throws Failure if a rank
// fails.
[[nodiscard]] std::vector<CallCount> count_calls(const Pairing& pairing);

}  // namespace hccl::test
