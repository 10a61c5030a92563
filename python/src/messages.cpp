// SPDX-License-Identifier: Apache-2.0
#include "messages.h"

#include "call.h"

#include <optional>

#include <c10/util/Exception.h>

namespace hccl_torch {

void Messages::require_peer(int peer, const char* call) const {
  TORCH_CHECK_VALUE(peer >= 0 && peer < communicator_->identity().size, "hccl_torch: ", call,
                    " with rank ", peer, ", but ", communicator_->describe(),
                    " has the ranks 0 to ", communicator_->identity().size - 1);
}

Messages::WorkPtr Messages::send(const at::Tensor& tensor, int peer, int tag) {
  require_peer(peer, "send");
  Issue issue(queue_, c10d::OpType::SEND, "send", communicator_->stream_to(peer));
  const at::Tensor from = issue.input(tensor);
  if (tag != 0 && !issue.is_coalesced()) {
    const at::Tensor header = issue.scratch(sizeof(TagHeader));
    *static_cast<TagHeader*>(header.data_ptr()) = {tag, static_cast<std::int64_t>(from.nbytes())};
    issue.send(header, peer);
  }
  issue.send(from, peer);
  return issue.end();
}

Messages::WorkPtr Messages::receive(at::Tensor& tensor, int peer, int tag) {
  require_peer(peer, "recv");
  if (!queue_.is_coalescing()) {
    if (tag != 0) return inboxes_.from(peer).receive(tensor, tag);
    if (Inbox* const inbox = inboxes_.busy_from(peer)) return inbox->receive(tensor, 0);
  }
  Issue issue(queue_, c10d::OpType::RECV, "recv", communicator_->stream_from(peer));
  issue.operation().source = peer;
  issue.receive(issue.output(tensor, false), peer);
  return issue.end();
}

// All tensors are looked at before the group of calls begins: what the library refuses then,
// hcclGroupEnd() reports.
void Messages::exchange(Issue& issue, Tensors& outputs, const Tensors& inputs) {
  issue.consists_of_messages();
  Tensors sent(inputs.size());
  Tensors received(outputs.size());
  for (std::size_t peer = 0; peer < inputs.size(); ++peer) {
    if (inputs[peer].defined()) sent[peer] = issue.input(inputs[peer]);
  }
  for (std::size_t peer = 0; peer < outputs.size(); ++peer) {
    if (outputs[peer].defined()) received[peer] = issue.output(outputs[peer], false);
  }
  std::optional<CallGroup> calls;
  if (!issue.is_coalesced()) calls.emplace();
  for (std::size_t peer = 0; peer < sent.size(); ++peer) {
    if (sent[peer].defined()) issue.send(sent[peer], static_cast<int>(peer));
  }
  for (std::size_t peer = 0; peer < received.size(); ++peer) {
    if (received[peer].defined()) issue.receive(received[peer], static_cast<int>(peer));
  }
  if (calls) calls->end();
}

}  // namespace hccl_torch
