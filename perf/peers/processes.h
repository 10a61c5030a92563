// SPDX-License-Identifier: Apache-2.0
// Runs the ranks of a driver as child processes, which end when the driver ends or when one of them
// fails.
#pragma once

#include <cstdint>
#include <functional>

namespace peers {

// Runs `serve_rank` in a child process for each rank. serve_rank() returns a number of wrong
// elements. Its exceptions are printed on standard error after the name `program`. Blocks until all
// ranks have ended. Returns the program's exit status: 1 if a rank threw, died or found a wrong
// element, else 0.
[[nodiscard]] int run_processes(const char* program, int ranks,
                                const std::function<std::uint64_t(int rank)>& serve_rank);

}  // namespace peers
