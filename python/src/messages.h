// SPDX-License-Identifier: Apache-2.0
// Messages between two ranks of a process group, and the collectives that consist of them.
#pragma once

#include "communicator.h"
#include "operation_queue.h"
#include "receive_matcher.h"

#include <memory>
#include <utility>
#include <vector>

namespace hccl_torch {

// Receives match messages in the order of the calls, whether they name their source or not; those
// with tags other than 0 by their tags, in the order of the calls where these are equal. A rank may
// send to itself. Inside coalesced calls the messages of two ranks match in the order of their
// tags, and of the calls where these are equal; a receive does not wait behind those before the
// block.
class Messages {
 public:
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;
  using Tensors = std::vector<at::Tensor>;

  Messages(OperationQueue& queue, std::shared_ptr<Communicator> communicator)
      : queue_(queue), communicator_(communicator), matcher_(queue, std::move(communicator)) {}

  // Throw c10::DistBackendError, c10::TypeError and c10::ValueError, as the process group's methods
  // do.
  [[nodiscard]] WorkPtr send(const at::Tensor& tensor, int peer, int tag);
  [[nodiscard]] WorkPtr receive(at::Tensor& tensor, int peer, int tag);
  [[nodiscard]] WorkPtr receive_from_any(at::Tensor& tensor, int tag) {
    return matcher_.post(tensor, ReceiveMatcher::kAnySource, tag);
  }

  // Returns whether the matcher holds receives that the library has not been given yet.
  [[nodiscard]] bool has_posted() { return matcher_.has_posted(); }
  // Fails the receives that have found no message. Later ones fail.
  void stop() { matcher_.stop(); }

  // The i-th input goes to rank i, whose message fills the i-th output. Undefined ones take part
  // in nothing. Both lists may be empty.
  void exchange(Issue& issue, Tensors& outputs, const Tensors& inputs);

 private:
  void require_peer(int peer, const char* call) const;
  [[nodiscard]] WorkPtr send_to_self(const at::Tensor& tensor, int tag);

  OperationQueue& queue_;
  const std::shared_ptr<Communicator> communicator_;
  ReceiveMatcher matcher_;
};

}  // namespace hccl_torch
