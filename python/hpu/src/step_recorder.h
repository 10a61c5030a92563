// SPDX-License-Identifier: Apache-2.0
// Counts the operations of each step in lazy mode, and finds out whether an earlier step had the
// same ones. A real device would compile each step into one graph.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_set>

namespace hccl_torch_hpu {

// Thread-safe.
class StepRecorder {
 public:
  struct Step {
    std::uint64_t operations = 0;
    // True if the step has operations, and no earlier step had the same operations, shapes and
    // types.
    bool is_new = false;
  };

  [[nodiscard]] static StepRecorder& instance();

  void enable(bool is_enabled) noexcept { is_enabled_ = is_enabled; }
  [[nodiscard]] bool is_enabled() const noexcept {
    return is_enabled_.load(std::memory_order_relaxed);
  }
  // Adds an operation. `signature` identifies the operation together with the shapes and types of
  // its arguments.
  void add(std::size_t signature);
  // Ends the step and begins the next one.
  [[nodiscard]] Step end_step();

 private:
  StepRecorder() = default;

  std::atomic<bool> is_enabled_{false};
  std::mutex mutex_;
  std::uint64_t operations_ = 0;
  std::size_t signature_ = 0;
  std::unordered_set<std::size_t> known_;
};

}  // namespace hccl_torch_hpu
