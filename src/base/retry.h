// SPDX-License-Identifier: Apache-2.0
// Repeats system calls that a signal has interrupted, or that have failed because the kernel was
// short of memory.
#pragma once

#include <cerrno>
#include <chrono>
#include <thread>

#include <sys/types.h>

namespace hccl {

// Returns whether a call failed because the kernel was short of memory. Retry the call after
// kShortagePause, because poll(2) does not report when memory is available again.
[[nodiscard]] constexpr bool is_memory_shortage(int error) noexcept {
  return error == ENOBUFS || error == ENOMEM;
}
inline constexpr std::chrono::milliseconds kShortagePause{5};

// Returns whether a call failed because there were no free descriptors or no kernel memory.
[[nodiscard]] constexpr bool is_resource_shortage(int error) noexcept {
  return error == EMFILE || error == ENFILE || is_memory_shortage(error);
}

// Makes a system call, which on failure must return a negative value and set errno. Repeats the
// call immediately if a signal has interrupted it. If kernel memory is short, repeats the call up
// to kShortageRetries times, after pauses of 1, 2, 4, ... ms. Blocks for at most 63 ms. Use it only
// where the call cannot be retried later.
template <class Call>
ssize_t retried(Call call) noexcept {
  constexpr int kShortageRetries = 6;
  std::chrono::milliseconds pause{1};
  for (int retries = 0;;) {
    const ssize_t result = call();
    if (result >= 0) return result;
    if (errno == EINTR) continue;
    if (!is_memory_shortage(errno) || retries++ == kShortageRetries) return result;
    std::this_thread::sleep_for(pause);
    pause *= 2;
  }
}

}  // namespace hccl
