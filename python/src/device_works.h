// SPDX-License-Identifier: Apache-2.0
// The operations of all process groups that use tensors of the emulated device. Computations on
// such tensors wait for these operations, as on a device whose streams order work.
#pragma once

#include "memory_range.h"

#include <atomic>
#include <mutex>
#include <vector>

#include <c10/util/intrusive_ptr.h>

namespace hccl_torch {

class UnfinishedWorks;
class Work;

// Thread-safe.
class DeviceWorks {
 public:
  // Returns the singleton. It is never destroyed, because tensors are used until the process ends.
  [[nodiscard]] static DeviceWorks& instance();

  // Returns whether any operation uses tensors of the device. Costs one load.
  [[nodiscard]] bool any() const noexcept { return count_.load(std::memory_order_acquire) > 0; }
  // Returns the operations that use these bytes, except those of `own`.
  [[nodiscard]] std::vector<c10::intrusive_ptr<Work>> users_of(const MemoryRange& range,
                                                               const UnfinishedWorks* own);
  // Ends the operations that use these bytes. Blocks until they have run. Throws nothing, because
  // their works report failures. The caller must not hold a lock of a process group.
  void complete_users_of(const MemoryRange& range);
  // Ends all operations in the same way.
  void complete_all();

  void add(UnfinishedWorks& group);
  void remove(UnfinishedWorks& group);
  void count(int change) noexcept { count_.fetch_add(change, std::memory_order_acq_rel); }

 private:
  DeviceWorks() = default;

  std::atomic<int> count_{0};
  std::mutex mutex_;
  std::vector<UnfinishedWorks*> groups_;
};

}  // namespace hccl_torch
