// SPDX-License-Identifier: Apache-2.0
// The limit on how long a communicator waits for other ranks: HCCL_TIMEOUT, unless the program sets
// its own limit. A change does not affect waits in progress.
#pragma once

#include "base/deadline.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace hccl {

class WaitLimit {
 public:
  // The limit on one wait. Determines the deadline, and the advice in the error text.
  struct Value {
    std::chrono::milliseconds time{0};  // 0: no limit
    bool by_program = false;

    // Returns the advice that ends the error text of a time-out: how to raise the limit.
    [[nodiscard]] const char* remedy() const {
      return by_program ? "raise the limit that hcclEmulationSetTimeout has set"
                        : "raise HCCL_TIMEOUT";
    }
  };

  explicit WaitLimit(std::chrono::milliseconds environment)
      : packed_(static_cast<std::uint64_t>(environment.count()) << 1) {}

  // Sets the limit for waits that begin from now on. Limits above ten years become ten years, so
  // that deadlines do not overflow. Thread safety: any thread.
  void set(std::uint64_t milliseconds) noexcept {
    constexpr std::uint64_t kMost = 10ull * 365 * 24 * 3600 * 1000;
    packed_.store(std::min(milliseconds, kMost) << 1 | 1, std::memory_order_relaxed);
  }
  [[nodiscard]] Value get() const noexcept {
    const std::uint64_t packed = packed_.load(std::memory_order_relaxed);
    return {std::chrono::milliseconds(packed >> 1), (packed & 1) != 0};
  }

 private:
  std::atomic<std::uint64_t> packed_;  // milliseconds << 1 | (set by the program)
};

}  // namespace hccl
