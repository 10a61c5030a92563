// SPDX-License-Identifier: Apache-2.0
// The works of a process group whose operations have not ended: their tensors must live, whether or
// not the program keeps the works.
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

// Thread-safe. Works refer to this object and it to them, until they have ended.
class UnfinishedWorks {
 public:
  UnfinishedWorks() { DeviceWorks::instance().add(*this); }
  ~UnfinishedWorks() { DeviceWorks::instance().remove(*this); }
  UnfinishedWorks(const UnfinishedWorks&) = delete;
  UnfinishedWorks& operator=(const UnfinishedWorks&) = delete;

  void add(c10::intrusive_ptr<Work> work);
  // Keeps a work with HPU tensors whose operation begins later. Until add() or forget() others find
  // it among the users of its memory.
  void expect(c10::intrusive_ptr<Work> work);
  // Lets go of a work that was expected and will not begin.
  void forget(const Work& work);
  // Ends the works before this one that have run, so that they write to their tensors before it
  // does.
  void end_those_before(const Work& work);
  // Ends the works that have run, in order, and lets go of them. Does not block for any other.
  void reap();
  // Returns the works that write to these bytes in a step of their own, or at all if
  // `also_without_step`.
  [[nodiscard]] std::vector<c10::intrusive_ptr<Work>> find_writers_of(const MemoryRange& range,
                                                                      bool also_without_step);
  // Appends the works that use these bytes of HPU tensors to `users`.
  void find_users_of(const MemoryRange& range, std::vector<c10::intrusive_ptr<Work>>& users);
  // Appends the works that an operation on `stream` has to come after, because they use the same
  // memory, and not one after the other by themselves.
  void find_others_before(const DeviceUse& use, const void* stream,
                          std::vector<c10::intrusive_ptr<Work>>& users);
  // Blocks until the works have ended, for receives that wait for their message at most `patience`,
  // and not at all for parts of other operations. Returns whether they have.
  [[nodiscard]] bool await_end(std::chrono::milliseconds patience);
  // Lets go of all works. Aborts the communicator if some have not run, and keeps for ever what
  // may still be written to. Blocks for at most some seconds.
  void close(Communicator& communicator);

 private:
  // Returns the first work if it has run, else null.
  [[nodiscard]] c10::intrusive_ptr<Work> first_that_has_run();
  // Lets go of a work that has ended, if it is still the first.
  void remove_first(const Work& work);
  // With the lock held.
  void drop_expected(const Work& work);

  std::mutex mutex_;
  std::deque<c10::intrusive_ptr<Work>> works_;
  std::vector<c10::intrusive_ptr<Work>> expected_;
};

}  // namespace hccl_torch
