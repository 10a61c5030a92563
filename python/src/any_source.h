// SPDX-License-Identifier: Apache-2.0
// Receives whose sender is not known in advance: the rank that offers a message first.
#pragma once

#include "communicator.h"
#include "inboxes.h"
#include "operation_queue.h"
#include "receive_thread.h"

#include <memory>
#include <optional>

namespace hccl_torch {

// Looks for messages on a thread of its own. Its destructor fails the receives that have not found
// a message.
class AnySource {
 public:
  AnySource(OperationQueue& queue, std::shared_ptr<Communicator> communicator, Inboxes& inboxes)
      : queue_(queue), communicator_(std::move(communicator)), inboxes_(inboxes) {}
  AnySource(const AnySource&) = delete;
  AnySource& operator=(const AnySource&) = delete;

  // Returns the work of a receive into `tensor` at once. Its source is known when it has ended.
  [[nodiscard]] c10::intrusive_ptr<c10d::Work> receive(at::Tensor& tensor, int tag);

 private:
  // Looks for a short time for a rank that offers a message, and returns it. Throws
  // c10::DistBackendError when the deadline has passed, or this object is being destroyed.
  [[nodiscard]] std::optional<int> look(const DeferredReceive& receive);
  void receive_next(const DeferredReceive& receive);
  void receive_tagged(const DeferredReceive& receive);

  OperationQueue& queue_;
  const std::shared_ptr<Communicator> communicator_;
  Inboxes& inboxes_;
  ReceiveThread thread_{[this](const DeferredReceive& receive) {
    receive.tag == 0 ? receive_next(receive) : receive_tagged(receive);
  }};
};

}  // namespace hccl_torch
