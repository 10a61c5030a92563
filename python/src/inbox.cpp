// SPDX-License-Identifier: Apache-2.0
#include "inbox.h"

#include "allocator.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <c10/util/Exception.h>

namespace hccl_torch {

namespace {

// How long a message that does not arrive keeps the destructor waiting.
constexpr std::chrono::milliseconds kLook{50};

}  // namespace

c10::intrusive_ptr<c10d::Work> Inbox::receive(at::Tensor& tensor, int tag) {
  c10::intrusive_ptr<Work> work = queue_.defer(c10d::OpType::RECV, "recv", tensor);
  work->operation().source = source_;
  thread_.post({work, tensor, tag, {}});
  return work;
}

std::optional<at::Tensor> Inbox::take(std::int64_t tag) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(early_.begin(), early_.end(),
                                  [&](const Early& early) { return early.tag == tag; });
  if (found == early_.end()) return std::nullopt;
  at::Tensor bytes = std::move(found->bytes);
  early_.erase(found);
  return bytes;
}

void Inbox::serve(const DeferredReceive& receive) {
  if (receive.tag != 0) return deliver(receive, await(receive));
  at::Tensor tensor = receive.tensor;
  Issue issue(queue_, receive.work, communicator_->stream_from(source_));
  issue.receive(issue.output(tensor, false), source_);
  static_cast<void>(issue.end());
}

at::Tensor Inbox::await(const DeferredReceive& receive) {
  for (;;) {
    const std::lock_guard lock(taking_in_);
    if (const auto bytes = take(receive.tag)) return *bytes;
    take_in(receive.work.get());
  }
}

void Inbox::try_take_in() {
  const std::unique_lock lock(taking_in_, std::try_to_lock);
  if (lock) take_in(nullptr);
}

void Inbox::take_in(Work* whole) {
  const at::Tensor bytes = receive_now(sizeof(TagHeader), whole);
  const TagHeader header = *static_cast<const TagHeader*>(bytes.const_data_ptr());
  at::Tensor message = receive_now(header.bytes, whole);
  const std::lock_guard lock(mutex_);
  early_.push_back({header.tag, std::move(message)});
}

at::Tensor Inbox::receive_now(std::int64_t bytes, Work* whole) {
  at::Tensor buffer = empty_scratch({bytes}, at::kByte);
  const c10::intrusive_ptr<Work> part = queue_.make_part(whole, "recv");
  {
    Issue issue(queue_, part, communicator_->stream_from(source_));
    issue.receive(issue.output(buffer, false), source_);
    issue.end_part();
  }
  while (!part->ends_within(kLook)) thread_.require_running();
  if (const std::exception_ptr error = part->exception()) std::rethrow_exception(error);
  return buffer;
}

void Inbox::deliver(const DeferredReceive& receive, const at::Tensor& bytes) {
  at::Tensor tensor = receive.tensor;
  TORCH_CHECK_WITH(DistBackendError, bytes.nbytes() == tensor.nbytes(), "rank ", source_,
                   " has sent ", bytes.nbytes(), " bytes with tag ", receive.tag,
                   " for a tensor of ", tensor.nbytes(),
                   "; receive them into a tensor of their size");
  if (tensor.numel() > 0) copy_into(tensor, bytes.view(tensor.scalar_type()).view(tensor.sizes()));
  Issue issue(queue_, receive.work, communicator_->stream_from(source_));
  issue.fill(tensor);
  static_cast<void>(issue.end());
}

}  // namespace hccl_torch
