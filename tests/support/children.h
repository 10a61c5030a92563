// SPDX-License-Identifier: Apache-2.0
// Runs parts of a test in a forked child.
#pragma once

#include "programs/child.h"

#include <type_traits>

#include <sys/wait.h>
#include <unistd.h>

namespace hccl::test {

// Forks a child that runs `body`. Returns the child's pid, or -1 if the fork fails. The kernel
// kills the child if this process dies. The child exits with the status that `body` returns, or
// with 0 for true and 1 for false.
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

// Blocks until a child has ended. Returns its exit status, or the negated signal that killed it.
// Returns -1 if this process has no such child.
[[nodiscard]] inline int status_of(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}
[[nodiscard]] inline bool succeeds(pid_t child) { return status_of(child) == 0; }

// Runs `body` in a child and returns the child's status, as status_of() does.
template <class Body>
[[nodiscard]] int status_in_child(const Body& body) {
  return status_of(start_child(body));
}

}  // namespace hccl::test
