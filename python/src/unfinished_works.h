// SPDX-License-Identifier: Apache-2.0
// The works of a process group whose operations have not ended. The tensors of a work must live
// until its operation has ended, even if the program drops its references to the work.
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

// Works and this object refer to each other until the works have ended. Thread safety: any thread.
class UnfinishedWorks {
 public:
  UnfinishedWorks() { DeviceWorks::instance().add(*this); }
  ~UnfinishedWorks() { DeviceWorks::instance().remove(*this); }
  UnfinishedWorks(const UnfinishedWorks&) = delete;
  UnfinishedWorks& operator=(const UnfinishedWorks&) = delete;

  void add(c10::intrusive_ptr<Work> work);
  // Stores a work with HPU tensors whose operation begins later. find_users_of() returns this work
  // until add() or forget() is called.
  void expect(c10::intrusive_ptr<Work> work);
  // Drops an expected work that will not begin.
  void forget(const Work& work);
  // Ends the works before `work` that have run, so that their steps write to tensors before the
  // steps of `work` do.
  void end_those_before(const Work& work);
  // Ends and drops the works at the front of the list, up to the first that has not run. Does not
  // block.
  void reap();
  // Returns the works that write to these bytes. If `also_without_step` is false, returns only
  // those that write in a step.
  [[nodiscard]] std::vector<c10::intrusive_ptr<Work>> find_writers_of(const MemoryRange& range,
                                                                      bool also_without_step);
  // Appends the works that use these bytes of HPU tensors to `users`.
  void find_users_of(const MemoryRange& range, std::vector<c10::intrusive_ptr<Work>>& users);
  // Appends the works that an operation on `stream` with this use of memory must wait for. Leaves
  // out the works on `stream`, which run earlier anyway.
  void find_others_before(const DeviceUse& use, const void* stream,
                          std::vector<c10::intrusive_ptr<Work>>& users);
  // Blocks until the works have ended. Waits at most `timeout` for works that consist only of
  // receives. Ignores parts of other operations. Returns whether all have ended.
  [[nodiscard]] bool await_end(std::chrono::milliseconds timeout);
  // Drops all works. If some have not run, aborts the communicator and waits up to kAbortTime for
  // all works together. A work that still has not run is leaked, because the library may write to
  // its tensors.
  void close(Communicator& communicator);

 private:
  // Returns the first work if it has run, else null.
  [[nodiscard]] c10::intrusive_ptr<Work> first_that_has_run();
  // Drops a work that has ended, if it is still the first in the list.
  void remove_first(const Work& work);
  // Call with the lock held.
  void drop_expected(const Work& work);

  std::mutex mutex_;
  std::deque<c10::intrusive_ptr<Work>> works_;
  std::vector<c10::intrusive_ptr<Work>> expected_;
};

}  // namespace hccl_torch
