// SPDX-License-Identifier: Apache-2.0
// The ranks of a driver as child processes of it: they share memory, end with it, and the first
// that fails takes the others with it.
#pragma once

#include "session.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <string>

namespace peers {

// Memory that this process's later children share with it; never given back. Throws
// std::bad_alloc.
[[nodiscard]] void* shared_memory(std::size_t bytes);

// A T there. It is not destroyed.
template <class T>
[[nodiscard]] T& shared() {
  return *new (shared_memory(sizeof(T))) T();
}

// Runs `serve_rank` in a child process for each rank and waits for all of them. It returns the
// number of wrong elements that it saw; what it throws goes to standard error after the name of the
// program. Returns the program's exit status: 0, or 1 if a rank threw, died or saw a wrong element.
[[nodiscard]] int run_processes(const std::string& program, int ranks,
                                const std::function<std::uint64_t(int rank)>& serve_rank);

}  // namespace peers
