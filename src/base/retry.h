// SPDX-License-Identifier: Apache-2.0
// System calls that fail for a moment only: interrupted by a signal, or short of kernel memory.
#pragma once

#include <cerrno>
#include <chrono>
#include <thread>

#include <sys/types.h>

namespace hccl {

// Returns whether a call failed because the kernel was short of memory at that moment. poll(2) does
// not tell when there is memory again: retry after kShortagePause.
[[nodiscard]] constexpr bool is_memory_shortage(int error) noexcept {
  return error == ENOBUFS || error == ENOMEM;
}
inline constexpr std::chrono::milliseconds kShortagePause{5};

// Returns whether a call failed for want of descriptors or of kernel memory.
[[nodiscard]] constexpr bool is_resource_shortage(int error) noexcept {
  return error == EMFILE || error == ENFILE || is_memory_shortage(error);
}

// Repeats a call that returns a negative value and sets errno: at once if it was interrupted, and
// up to kShortageRetries times, after pauses that double, if memory was short. Blocks for 63 ms at
// most. For small messages that nobody can send later; a caller that can retry later does so
// instead.
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
