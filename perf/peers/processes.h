// SPDX-License-Identifier: Apache-2.0
// The ranks of a driver, as its child processes. They end when the driver ends, and all end if one
// fails.
#pragma once

#include <cstdint>
#include <functional>

namespace peers {

// Runs `serve_rank` in a child process for each rank. serve_rank returns a number of wrong
// elements; its exceptions are printed on standard error, with the name of the program. Blocks
// until all ranks have ended. Returns the program's exit status: 0, or 1 if a rank threw, died or
// found a wrong element.
[[nodiscard]] int run_processes(const char* program, int ranks,
                                const std::function<std::uint64_t(int rank)>& serve_rank);

}  // namespace peers
