// SPDX-License-Identifier: Apache-2.0
// One run of two ranks, in one of which a call fails.
#pragma once

#include "plan.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace hccl::test {

enum class Layout { one_node, two_nodes, rings };  // rings: one node, HCCL_TRANSPORT=shm

struct Pairing {
  Layout layout = Layout::one_node;
  int victim = 0;
};

[[nodiscard]] const char* name_of(Layout layout);

struct Result {
  std::array<int, 2> statuses{};  // of waitpid()
  bool hung = false;              // and was killed
  std::string output;             // what the ranks wrote to stderr

  // Returns the defect that the run has shown, as a clause; empty if each rank has succeeded with
  // right data, or a call of it has returned an error with a text.
  [[nodiscard]] std::string defect() const;
  [[nodiscard]] bool succeeded(int rank) const;
};

// Any thread may call these.
[[nodiscard]] Result run(const Pairing& pairing, const Injection& injection);
// Runs without an injection and returns what the victim calls. Throws Failure if that does not
// succeed.
[[nodiscard]] std::vector<CallCount> count_calls(const Pairing& pairing);

}  // namespace hccl::test
