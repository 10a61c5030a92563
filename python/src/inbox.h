// SPDX-License-Identifier: Apache-2.0
// Receives from one rank whose messages have tags. The library matches messages in the order of the
// calls, so a message with a tag other than 0 is sent as two: a TagHeader, then the elements. The
// inbox keeps messages that arrive before the program asks for their tag.
#pragma once

#include "communicator.h"
#include "operation_queue.h"
#include "receive_thread.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

namespace hccl_torch {

struct TagHeader {
  std::int64_t tag = 0;
  std::int64_t bytes = 0;
};

// Receives on a thread of its own. Its destructor fails the receives that have found no message.
class Inbox {
 public:
  Inbox(OperationQueue& queue, std::shared_ptr<Communicator> communicator, int source)
      : queue_(queue), communicator_(std::move(communicator)), source_(source) {}
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  // Returns the work of a receive into `tensor` at once. With tag 0 it gets the message behind
  // those of the receives before.
  [[nodiscard]] c10::intrusive_ptr<c10d::Work> receive(at::Tensor& tensor, int tag);
  // Returns whether receives wait, so that later ones must wait behind them.
  [[nodiscard]] bool is_busy() { return thread_.is_busy(); }
  // Removes the first message of this tag that has arrived, and returns its bytes.
  [[nodiscard]] std::optional<at::Tensor> take(std::int64_t tag);
  // Takes in one message that the source offers, whatever its tag, unless another thread takes one
  // in already. Blocks until the message has arrived. Throws c10::DistBackendError.
  void try_take_in();
  // Ends a receive with the bytes of its message. Throws c10::DistBackendError if the tensor has
  // another size.
  void deliver(const DeferredReceive& receive, const at::Tensor& bytes);

 private:
  struct Early {
    std::int64_t tag = 0;
    at::Tensor bytes;
  };

  void serve(const DeferredReceive& receive);
  [[nodiscard]] at::Tensor await(const DeferredReceive& receive);
  // With taking_in_ held. `whole` is the work that the message is for, null if it is not known.
  void take_in(Work* whole);
  // Receives `bytes` bytes. Blocks until they have arrived. Throws c10::DistBackendError.
  [[nodiscard]] at::Tensor receive_now(std::int64_t bytes, Work* whole);

  OperationQueue& queue_;
  const std::shared_ptr<Communicator> communicator_;
  const int source_;
  std::mutex taking_in_;  // a header and its elements must reach the same thread
  std::mutex mutex_;      // guards early_
  std::deque<Early> early_;
  ReceiveThread thread_{[this](const DeferredReceive& receive) { serve(receive); }};
};

}  // namespace hccl_torch
