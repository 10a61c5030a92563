// SPDX-License-Identifier: Apache-2.0
// Counts the operations of this process, and the bytes of their tensors.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace hccl_torch {

// Thread-safe.
class Statistics {
 public:
  struct Counts {
    std::uint64_t calls = 0;
    std::uint64_t bytes = 0;      // bytes of the tensors; see Issue::end()
    std::uint64_t zero_copy = 0;  // number of calls with only contiguous tensors in shared memory
    std::uint64_t staged = 0;     // number of other calls
  };

  [[nodiscard]] static Statistics& instance();

  void add(const char* operation, std::uint64_t bytes, bool zero_copy);
  // Returns the counts, keyed by the function's name in torch.distributed.
  [[nodiscard]] std::map<std::string, Counts> counts() const;
  void reset();

 private:
  mutable std::mutex mutex_;
  std::map<const char*, Counts> counts_;  // the keys are string literals
};

}  // namespace hccl_torch
