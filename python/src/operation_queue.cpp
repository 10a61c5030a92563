// SPDX-License-Identifier: Apache-2.0
// Queueing operations, and the tensors that they use.
#include "operation_queue.h"

#include "call.h"

#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/util/Exception.h>

namespace hccl_torch {

OperationQueue::OperationQueue(int rank, std::string group,
                               std::shared_ptr<Communicator> communicator)
    : rank_(rank), group_(std::move(group)), communicator_(std::move(communicator)) {}

c10::intrusive_ptr<Work> OperationQueue::make_work(c10d::OpType type, const char* name) {
  Operation operation;
  operation.type = type;
  operation.name = name;
  operation.sequence = ++sequence_;
  operation.group = group_;
  return c10::make_intrusive<Work>(rank_, communicator_, completer_, std::move(operation));
}

// Works that have ended go first: to ask for one that has just been queued would wake the library's
// worker, where the program is about to wait for it and run it itself.
void OperationQueue::begin(const c10::intrusive_ptr<Work>& work) {
  work->begin();
  while (!unfinished_.empty() && unfinished_.front()->isCompleted()) unfinished_.pop_front();
  unfinished_.push_back(work);
}

void OperationQueue::start_coalescing() {
  const std::lock_guard lock(mutex_);
  TORCH_CHECK_WITH(DistBackendError, !coalesced_, "hccl_torch: calls are being coalesced already");
  check(hcclGroupStart(), "hcclGroupStart");
  coalesced_ = make_work(c10d::OpType::COALESCED, "coalesced calls");
}

c10::intrusive_ptr<Work> OperationQueue::end_coalescing() {
  const std::lock_guard lock(mutex_);
  TORCH_CHECK_WITH(DistBackendError, coalesced_, "hccl_torch: no calls are being coalesced");
  c10::intrusive_ptr<Work> work = std::exchange(coalesced_, nullptr);
  check(hcclGroupEnd(), "hcclGroupEnd");
  begin(work);
  return work;
}

std::uint64_t OperationQueue::sequence() {
  const std::lock_guard lock(mutex_);
  return sequence_;
}

Issue::Issue(OperationQueue& queue, c10d::OpType type, const char* name)
    : queue_(queue),
      lock_(queue.mutex_),
      work_(queue.coalesced_ ? queue.coalesced_ : queue.make_work(type, name)) {}

at::Tensor Issue::input(const at::Tensor& tensor) {
  TORCH_CHECK_TYPE(tensor.device().is_cpu() && tensor.layout() == at::kStrided,
                   "hccl_torch: ", operation().name, " takes dense CPU tensors, not ",
                   tensor.toString());
  at::Tensor flat = tensor.contiguous();
  operation().buffers.push_back(flat);
  return flat;
}

at::Tensor Issue::output(at::Tensor& tensor, bool keeps) {
  TORCH_CHECK_TYPE(tensor.device().is_cpu() && tensor.layout() == at::kStrided,
                   "hccl_torch: ", operation().name, " takes dense CPU tensors, not ",
                   tensor.toString());
  operation().outputs.push_back(tensor);
  if (tensor.is_contiguous()) return tensor;
  at::Tensor flat = keeps ? tensor.contiguous() : at::empty(tensor.sizes(), tensor.options());
  then([tensor, flat]() mutable { copy_into(tensor, flat); });
  return flat;
}

c10::intrusive_ptr<c10d::Work> Issue::end() {
  if (!queue_.coalesced_) queue_.begin(work_);
  return work_;
}

void copy_into(at::Tensor& to, const at::Tensor& from) {
  const at::AutoDispatchBelowADInplaceOrView guard;
  to.copy_(from);
}

}  // namespace hccl_torch
