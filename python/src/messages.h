// SPDX-License-Identifier: Apache-2.0
// Messages between two ranks of a process group, and the collectives that consist of messages.
#pragma once

#include "communicator.h"
#include "operation_queue.h"
#include "receive_matcher.h"

#include <memory>
#include <utility>
#include <vector>

namespace hccl_torch {

// Receives match messages in the order of the calls. This also holds between receives from one rank
// and receives from any rank. A receive with a tag other than 0 matches only messages with this
// tag. A rank may send to itself. In a coalescing block, the messages between two ranks match in
// the order of their tags, and messages with equal tags in the order of the calls. A receive in a
// block does not wait for receives before the block.
class Messages {
 public:
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;
  using Tensors = std::vector<at::Tensor>;

  Messages(OperationQueue& queue, std::shared_ptr<Communicator> communicator)
      : queue_(queue), communicator_(communicator), matcher_(queue, std::move(communicator)) {}

  // These functions throw c10::DistBackendError, c10::TypeError and c10::ValueError, like the
  // process group's methods.
  [[nodiscard]] WorkPtr send(const at::Tensor& tensor, int peer, int tag);
  [[nodiscard]] WorkPtr receive(at::Tensor& tensor, int peer, int tag);
  [[nodiscard]] WorkPtr receive_from_any(at::Tensor& tensor, int tag) {
    return matcher_.post(tensor, ReceiveMatcher::kAnySource, tag);
  }

  // Returns whether the matcher has receives that are still waiting for their messages.
  [[nodiscard]] bool has_posted() { return matcher_.has_posted(); }
  // Fails the posted receives that have not been matched with a message. Later posts fail too.
  void stop() { matcher_.stop(); }

  // Sends the i-th input to rank i, and fills the i-th output with the message from rank i. Skips
  // undefined tensors. Either list may be empty.
  void exchange(Issue& issue, Tensors& outputs, const Tensors& inputs);

 private:
  void require_peer(int peer, const char* call) const;
  [[nodiscard]] WorkPtr send_to_self(const at::Tensor& tensor, int tag);

  OperationQueue& queue_;
  const std::shared_ptr<Communicator> communicator_;
  ReceiveMatcher matcher_;
};

}  // namespace hccl_torch
