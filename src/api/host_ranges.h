// SPDX-License-Identifier: Apache-2.0
// The host memory that a program has allocated or mapped through the API.
#pragma once

#include <map>
#include <mutex>

namespace hccl::api {

// Counts how often each address has been added, because programs may map the same memory more than
// once. Thread-safe.
class HostRanges {
 public:
  void add(const void* pointer) {
    const std::lock_guard lock(mutex_);
    ++ranges_[pointer];
  }
  // Returns false if the address has not been added, or has been removed as often as added.
  [[nodiscard]] bool remove(const void* pointer) {
    const std::lock_guard lock(mutex_);
    const auto entry = ranges_.find(pointer);
    if (entry == ranges_.end()) return false;
    if (--entry->second == 0) ranges_.erase(entry);
    return true;
  }

 private:
  std::mutex mutex_;
  std::map<const void*, int> ranges_;
};

}  // namespace hccl::api
