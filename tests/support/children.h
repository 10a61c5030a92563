// SPDX-License-Identifier: Apache-2.0
// Parts of a test that run in a forked child.
#pragma once

#include "programs/child.h"

#include <type_traits>

#include <sys/wait.h>
#include <unistd.h>

namespace hccl::test {

// Starts a child that runs `body` and ends with this process at the latest. Its exit status is what
// `body` returns: a status, or true for 0 and false for 1. Returns its pid.
template <class Body>
[[nodiscard]] pid_t start_child(const Body& body) {
  const pid_t child = hccl_perf::fork_child();
  if (child != 0) return child;
  if constexpr (std::is_same_v<std::invoke_result_t<Body>, bool>) {
    _exit(body() ? 0 : 1);
  } else {
    _exit(body());
  }
}

// Waits for the end of a child. Returns its exit status, or minus the signal that ended it.
[[nodiscard]] inline int status_of(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}
[[nodiscard]] inline bool succeeds(pid_t child) { return status_of(child) == 0; }

// Runs `body` in a child. Returns its status.
template <class Body>
[[nodiscard]] int status_in_child(const Body& body) {
  return status_of(start_child(body));
}

}  // namespace hccl::test
