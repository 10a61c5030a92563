// SPDX-License-Identifier: Apache-2.0
// Runs the ranks of a driver as child processes, which end when the driver ends or when one of them
// fails.
#pragma once

#include <cstdint>
#include <functional>

namespace peers {

// Runs `serve_rank` in a child process for each rank. serve_rank() returns the number of wrong
// elements. Its exceptions are printed to standard error with the prefix `program`. Blocks until
// all ranks have ended. Returns the program's exit status: 128 + SIGPIPE if the reader of the
// output has exited, 1 if a rank threw, died or found a wrong element, else 0.
[[nodiscard]] int run_processes(const char* program, int ranks,
                                const std::function<std::uint64_t(int rank)>& serve_rank);

// The main function of a driver that starts its own ranks. Its only argument is the number of
// ranks, which main_of_driver() passes to `run_ranks`. Returns the exit status: 2 for wrong usage,
// 1 if `run_ranks` throws a std::exception, else its result.
[[nodiscard]] int main_of_driver(const char* program, int argc, char** argv,
                                 const std::function<int(int ranks)>& run_ranks);

}  // namespace peers
