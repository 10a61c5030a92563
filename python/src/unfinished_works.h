// SPDX-License-Identifier: Apache-2.0
// A process group's operations that have not ended. An operation's tensors must live until it has
// ended, even if the program drops its references to the Work.
#pragma once

#include "device_works.h"
#include "memory_range.h"

#include <chrono>
#include <deque>
#include <mutex>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

namespace hccl_torch {

class Communicator;
class Work;

// Each Work and this object refer to each other until the operation has ended. Thread safety: any
// thread.
class UnfinishedWorks {
 public:
  UnfinishedWorks() { DeviceWorks::instance().add(*this); }
  ~UnfinishedWorks() { DeviceWorks::instance().remove(*this); }
  UnfinishedWorks(const UnfinishedWorks&) = delete;
  UnfinishedWorks& operator=(const UnfinishedWorks&) = delete;

  void add(c10::intrusive_ptr<Work> work);
  // Stores an operation on HPU tensors that will begin later. find_users_of() includes it until
  // add() or forget() is called.
  void expect(c10::intrusive_ptr<Work> work);
  // Drops an expected operation that will not begin.
  void forget(const Work& work);
  // Ends the operations before `work` that have run, so that their steps write to tensors before
  // the steps of `work` do.
  void end_those_before(const Work& work);
  // Ends and drops the operations at the front of the list, up to the first that has not run. Does
  // not block.
  void reap();
  // Returns the operations that write to these bytes. If `also_without_step` is false, returns only
  // those that write in a step.
  [[nodiscard]] std::vector<c10::intrusive_ptr<Work>> find_writers_of(const MemoryRange& range,
                                                                      bool also_without_step);
  // Appends to `users` the operations that use these bytes of HPU tensors.
  void find_users_of(const MemoryRange& range, std::vector<c10::intrusive_ptr<Work>>& users);
  // Appends the operations that an operation on `stream` with this use of memory must wait for.
  // Leaves out operations on `stream`, which run earlier anyway.
  void find_others_before(const DeviceUse& use, const void* stream,
                          std::vector<c10::intrusive_ptr<Work>>& users);
  // Blocks until the operations have ended. Waits at most `timeout` for those that consist only of
  // receives. Ignores parts of other operations. Returns whether all have ended.
  [[nodiscard]] bool await_end(std::chrono::milliseconds timeout);
  // Drops all operations. If some have not run, aborts the communicator and waits up to kAbortTime
  // in all. Leaks an operation that still has not run, because the library may write to its
  // tensors.
  void close(Communicator& communicator);

 private:
  // Returns the first operation if it has run, else null.
  [[nodiscard]] c10::intrusive_ptr<Work> first_that_has_run();
  // Drops an operation that has ended, if it is still the first in the list.
  void remove_first(const Work& work);
  // Call with the lock held.
  void drop_expected(const Work& work);

  std::mutex mutex_;
  std::deque<c10::intrusive_ptr<Work>> works_;
  std::vector<c10::intrusive_ptr<Work>> expected_;
};

}  // namespace hccl_torch
