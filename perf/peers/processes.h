// SPDX-License-Identifier: Apache-2.0
// The ranks of a driver as child processes of it: they end with it, and the first that fails takes
// the others with it.
#pragma once

#include <cstdint>
#include <functional>

namespace peers {

// Runs `serve_rank` in a child process for each rank and waits for all of them. It returns the
// number of wrong elements that it saw; what it throws goes to standard error after the name of the
// program. Returns the program's exit status: 0, or 1 if a rank threw, died or saw a wrong element.
[[nodiscard]] int run_processes(const char* program, int ranks,
                                const std::function<std::uint64_t(int rank)>& serve_rank);

}  // namespace peers
