// SPDX-License-Identifier: Apache-2.0
#include "messages.h"

#include "allocator.h"
#include "call.h"

#include <cstring>
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
  if (peer == communicator_->rank() && !queue_.is_coalescing()) return send_to_self(tensor, tag);
  Issue issue(queue_, c10d::OpType::SEND, "send", communicator_->stream_to(peer));
  const at::Tensor from = issue.input(tensor);
  if (tag != 0 && !issue.is_coalesced()) {
    const at::Tensor header = issue.scratch(TagHeader::kWireBytes);
    TagHeader fields{.tag = tag, .bytes = static_cast<std::int64_t>(from.nbytes())};
    std::memcpy(header.data_ptr(), &fields, sizeof fields);
    issue.send(header, peer);
  }
  issue.send(from, peer, tag);
  return issue.end();
}

// Copies the elements before it returns, so the send has run by then.
Messages::WorkPtr Messages::send_to_self(const at::Tensor& tensor, int tag) {
  const int self = communicator_->rank();
  c10::intrusive_ptr<Work> work = queue_.defer(c10d::OpType::SEND, "send", tensor);
  at::Tensor bytes;
  {
    Issue issue(queue_, work, communicator_->stream_to(self));
    const at::Tensor from = issue.input(tensor);
    issue.await_writers(tensor);
    at::Tensor copy = empty_scratch(from.sizes(), from.scalar_type());
    copy_into(copy, from);
    bytes = copy.view(-1).view(at::kByte);
    static_cast<void>(issue.end());
  }
  matcher_.send_to_self(bytes, tag);
  return work;
}

Messages::WorkPtr Messages::receive(at::Tensor& tensor, int peer, int tag) {
  require_peer(peer, "recv");
  if (!queue_.is_coalescing() && (tag != 0 || matcher_.must_post(peer)))
    return matcher_.post(tensor, peer, tag);
  Issue issue(queue_, c10d::OpType::RECV, "recv", communicator_->stream_from(peer));
  issue.operation().source = peer;
  issue.receive(issue.output(tensor, false), peer, tag);
  return issue.end();
}

// Checks all tensors before the group of calls begins, because inside a group the library reports
// errors only in hcclGroupEnd().
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
