// SPDX-License-Identifier: Apache-2.0
// Receives whose sender is not known in advance: the rank that offers a message first.
#pragma once

#include "communicator.h"
#include "operation_queue.h"

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

namespace hccl_torch {

// Looks for messages on a thread of its own, which the first receive starts.
class AnySource {
 public:
  AnySource(OperationQueue& queue, std::shared_ptr<Communicator> communicator)
      : queue_(queue), communicator_(std::move(communicator)) {}
  // Fails the receives that have not found a message.
  ~AnySource();
  AnySource(const AnySource&) = delete;
  AnySource& operator=(const AnySource&) = delete;

  // Returns the work of a receive into `tensor` at once. Its source is known when it has ended.
  [[nodiscard]] c10::intrusive_ptr<c10d::Work> receive(at::Tensor& tensor);

 private:
  struct Request {
    c10::intrusive_ptr<Work> work;
    at::Tensor tensor;
  };

  void run();
  // Returns the rank that offers a message, or -1 if this object is being destroyed. Throws
  // c10::DistBackendError when the group's deadline has passed.
  [[nodiscard]] int find_source();
  void serve(const Request& request);

  OperationQueue& queue_;
  const std::shared_ptr<Communicator> communicator_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Request> requests_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace hccl_torch
