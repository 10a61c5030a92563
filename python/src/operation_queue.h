// SPDX-License-Identifier: Apache-2.0
// The operations of a process group in the order in which the program queues them.
#pragma once

#include "communicator.h"
#include "work.h"

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

namespace hccl_torch {

// Thread-safe.
class OperationQueue {
 public:
  // `group` is the group's name, for texts.
  OperationQueue(int rank, std::string group, std::shared_ptr<Communicator> communicator);

  // Between these two all operations are parts of one, whose work the second returns. The calls of
  // the library form one group. Throw c10::DistBackendError.
  void start_coalescing();
  [[nodiscard]] c10::intrusive_ptr<Work> end_coalescing();
  [[nodiscard]] std::uint64_t sequence();

 private:
  friend class Issue;

  [[nodiscard]] c10::intrusive_ptr<Work> make_work(c10d::OpType type, const char* name);
  // With the lock held, after all calls of the operation: hands the work out, and lets go of works
  // that have ended.
  void begin(const c10::intrusive_ptr<Work>& work);

  const int rank_;
  const std::string group_;
  const std::shared_ptr<Communicator> communicator_;
  const std::shared_ptr<Completer> completer_ = std::make_shared<Completer>();
  std::mutex mutex_;  // held while an operation is queued
  std::uint64_t sequence_ = 0;
  c10::intrusive_ptr<Work> coalesced_;               // while calls are coalesced
  std::deque<c10::intrusive_ptr<Work>> unfinished_;  // whose buffers must live
};

// One operation while it is queued. Holds the queue's lock.
class Issue {
 public:
  Issue(OperationQueue& queue, c10d::OpType type, const char* name);

  [[nodiscard]] Operation& operation() { return work_->operation(); }

  // Returns a tensor with the elements of `tensor` in one piece, which lives as long as the
  // operation. Throws c10::TypeError for a tensor that is not dense or not in CPU memory; so does
  // output().
  [[nodiscard]] at::Tensor input(const at::Tensor& tensor);
  // Returns a tensor in one piece, whose elements are those of `tensor` once the operation has
  // ended. `keeps`: it has them from the start.
  [[nodiscard]] at::Tensor output(at::Tensor& tensor, bool keeps);
  // Adds a step that the first to notice the operation's end runs.
  void then(std::function<void()> step) { operation().steps.push_back(std::move(step)); }

  // Ends the operation: all its calls have been made. Returns its work.
  [[nodiscard]] c10::intrusive_ptr<c10d::Work> end();

 private:
  OperationQueue& queue_;
  const std::lock_guard<std::mutex> lock_;
  const c10::intrusive_ptr<Work> work_;
};

// Copies into a tensor of the program, which may be an inference tensor, on any thread.
void copy_into(at::Tensor& to, const at::Tensor& from);

}  // namespace hccl_torch
