// SPDX-License-Identifier: Apache-2.0
// Handles system calls that fail only temporarily: because of a signal, or for lack of kernel
// memory.
#pragma once

#include <cerrno>
#include <chrono>
#include <thread>

#include <sys/types.h>

namespace hccl {

// Returns whether a call failed because the kernel was temporarily short of memory. poll(2) does
// not report when memory is available again: retry after kShortagePause.
[[nodiscard]] constexpr bool is_memory_shortage(int error) noexcept {
  return error == ENOBUFS || error == ENOMEM;
}
inline constexpr std::chrono::milliseconds kShortagePause{5};

// Returns whether a call failed because descriptors or kernel memory ran out.
[[nodiscard]] constexpr bool is_resource_shortage(int error) noexcept {
  return error == EMFILE || error == ENFILE || is_memory_shortage(error);
}

// Repeats a call that returns a negative value and sets errno: at once if a signal interrupted it,
// and up to kShortageRetries times, after pauses that double, if kernel memory was short. Blocks
// for at most 63 ms. For small messages that cannot be sent later; a caller that can retry later
// must do so instead.
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
