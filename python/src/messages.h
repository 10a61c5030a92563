// SPDX-License-Identifier: Apache-2.0
// Messages between two ranks of a process group, and the collectives that consist of them.
#pragma once

#include "any_source.h"
#include "communicator.h"
#include "inboxes.h"
#include "operation_queue.h"

#include <memory>
#include <vector>

namespace hccl_torch {

// Messages between two ranks match in the order of the calls, but those with tags other than 0 by
// their tags, in the order of the calls where these are equal. Inside coalesced calls tags are
// ignored.
class Messages {
 public:
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;
  using Tensors = std::vector<at::Tensor>;

  Messages(OperationQueue& queue, std::shared_ptr<Communicator> communicator)
      : queue_(queue),
        communicator_(communicator),
        inboxes_(queue, communicator),
        any_source_(queue, communicator, inboxes_) {}

  // Throw c10::DistBackendError, c10::TypeError and c10::ValueError, as the process group's methods
  // do.
  [[nodiscard]] WorkPtr send(const at::Tensor& tensor, int peer, int tag);
  [[nodiscard]] WorkPtr receive(at::Tensor& tensor, int peer, int tag);
  [[nodiscard]] WorkPtr receive_from_any(at::Tensor& tensor, int tag) {
    return any_source_.receive(tensor, tag);
  }

  // The i-th input goes to rank i, whose message fills the i-th output. Undefined ones take part
  // in nothing. Both lists may be empty.
  void exchange(Issue& issue, Tensors& outputs, const Tensors& inputs);

 private:
  void require_peer(int peer, const char* call) const;

  OperationQueue& queue_;
  const std::shared_ptr<Communicator> communicator_;
  Inboxes inboxes_;
  AnySource any_source_;
};

}  // namespace hccl_torch
