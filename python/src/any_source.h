// SPDX-License-Identifier: Apache-2.0
// Receives whose sender is not known in advance: the rank that offers a message first.
#pragma once

#include "communicator.h"
#include "inboxes.h"
#include "operation_queue.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

namespace hccl_torch {

// Looks for messages on a thread of its own, which the first receive starts.
class AnySource {
 public:
  AnySource(OperationQueue& queue, std::shared_ptr<Communicator> communicator, Inboxes& inboxes)
      : queue_(queue), communicator_(std::move(communicator)), inboxes_(inboxes) {}
  // Fails the receives that have not found a message.
  ~AnySource();
  AnySource(const AnySource&) = delete;
  AnySource& operator=(const AnySource&) = delete;

  // Returns the work of a receive into `tensor` at once. Its source is known when it has ended.
  [[nodiscard]] c10::intrusive_ptr<c10d::Work> receive(at::Tensor& tensor, int tag);

 private:
  using Deadline = std::chrono::steady_clock::time_point;
  struct Request {
    c10::intrusive_ptr<Work> work;
    at::Tensor tensor;
    int tag = 0;
    Deadline deadline;
  };

  void run();
  // Returns the rank that offers a message. Throws c10::DistBackendError when the group's deadline
  // has passed, or this object is being destroyed.
  [[nodiscard]] int find_source(Deadline deadline);
  void serve(const Request& request);
  void receive_next(const Request& request);
  void receive_tagged(const Request& request);

  OperationQueue& queue_;
  const std::shared_ptr<Communicator> communicator_;
  Inboxes& inboxes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Request> requests_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace hccl_torch
