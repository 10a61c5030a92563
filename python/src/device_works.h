// SPDX-License-Identifier: Apache-2.0
// The unfinished operations of all process groups on HPU tensors. Computations on the same memory
// wait for them, as they would on a device whose streams order the work.
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

  // Returns whether any unfinished operation uses HPU tensors. Costs one atomic load.
  [[nodiscard]] bool any() const noexcept { return count_.load(std::memory_order_acquire) > 0; }
  // Returns the operations that use these bytes, except the operations of the group `own`, which
  // may be null.
  [[nodiscard]] std::vector<c10::intrusive_ptr<Work>> users_of(const MemoryRange& range,
                                                               const UnfinishedWorks* own);
  // Blocks until the operations that use these bytes have run, then completes them, as
  // Work::complete() does. Throws nothing: each Work stores its error. The caller must not hold the
  // lock of a process group.
  void complete_users_of(const MemoryRange& range);
  // Does the same for the operations on any HPU tensor.
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
