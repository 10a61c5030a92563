// SPDX-License-Identifier: Apache-2.0
// Queues operations and prepares their tensors.
#include "operation_queue.h"

#include "access.h"
#include "allocator.h"
#include "call.h"
#include "host_alias.h"
#include "memory_pool.h"
#include "statistics.h"

#include <algorithm>
#include <string>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/record_function.h>
#include <c10/util/Exception.h>

namespace hccl_torch {

namespace {

// The minimum message size, in bytes, at which the call checks the memory. For smaller messages,
// the check would take longer than the transfer.
constexpr std::size_t kLeastChecked = 16384;

// Throws c10::TypeError unless the tensor is a dense CPU or HPU tensor.
void require_dense(const at::Tensor& tensor, const char* call) {
  TORCH_CHECK_TYPE((tensor.is_cpu() || tensor.is_hpu()) && tensor.layout() == at::kStrided,
                   "hccl_torch: ", call, " takes dense CPU or HPU tensors, not ",
                   tensor.toString());
}

Part part_of(c10d::OpType type) {
  if (type == c10d::OpType::SEND) return kSend;
  const bool receives = type == c10d::OpType::RECV || type == c10d::OpType::RECVANYSOURCE;
  return receives ? kReceive : kCollective;
}

// Removes from `users`, the operations for which a new receive would wait, those that have messages
// and do not read `range`: an earlier receive may get its message only after the new receive has
// got its own.
void leave_receives_out(std::vector<c10::intrusive_ptr<Work>>& users, const MemoryRange& range) {
  std::erase_if(users, [&](const c10::intrusive_ptr<Work>& work) {
    return work->has_messages() && !work->reads(range);
  });
}

}  // namespace

OperationQueue::OperationQueue(std::shared_ptr<Communicator> communicator)
    : communicator_(std::move(communicator)) {}

OperationQueue::~OperationQueue() {
  if (communicator_->is_in_forked_child()) return;
  unfinished_->close(*communicator_);
  completer_->stop();
}

c10::intrusive_ptr<Work> OperationQueue::make_work(c10d::OpType type, const char* name) {
  Operation operation;
  operation.type = type;
  operation.name = name;
  operation.sequence = ++sequence_;
  operation.parts = part_of(type);
  const std::string title = at::hasCallbacks() ? std::string("hccl:") + name : std::string();
  return c10::make_intrusive<Work>(communicator_, completer_, unfinished_, std::move(operation),
                                   title.empty() ? nullptr : title.c_str());
}

// Also drops earlier operations that have run: usually all, because programs tend to wait for one
// operation before the next.
void OperationQueue::begin(const c10::intrusive_ptr<Work>& work) {
  work->begin();
  unfinished_->reap();
  unfinished_->add(work);
}

void OperationQueue::start_coalescing() {
  const std::lock_guard lock(mutex_);
  TORCH_CHECK_WITH(DistBackendError, !coalesced_ || coalesces(),
                   "hccl_torch: another thread is coalescing calls on ", communicator_->describe(),
                   "; let that thread finish first");
  coalesced_calls_.clear();
  coalesced_ = make_work(c10d::OpType::COALESCED, "coalesced calls");
  coalesced_->operation().parts = 0;
  coalescing_thread_ = std::this_thread::get_id();
}

c10::intrusive_ptr<Work> OperationQueue::end_coalescing() {
  const std::lock_guard lock(mutex_);
  TORCH_CHECK_WITH(DistBackendError, coalesces(),
                   "hccl_torch: _end_coalescing() was called, but this thread is not coalescing "
                   "calls; call _start_coalescing() first");
  c10::intrusive_ptr<Work> work = std::exchange(coalesced_, nullptr);
  auto calls = std::exchange(coalesced_calls_, {});
  order_by_tag(calls);
  const Stream& stream = communicator_->stream();
  const std::uint64_t after = stream.queued();
  std::exception_ptr error;
  try {
    CallGroup group;
    for (const CoalescedCall& call : calls) call.make();
    group.end();
  } catch (const c10::Error&) {
    error = std::current_exception();
    work->operation().steps.clear();
  }
  work->add({&stream, after, stream.queued()});
  begin(work);
  if (error) std::rethrow_exception(error);
  return work;
}

// Sorts the messages by tag and leaves the collectives at their positions. The library matches the
// messages between two ranks in the order of the calls. Both ranks use the same tags, so sorting
// gives both the same order.
void OperationQueue::order_by_tag(std::vector<CoalescedCall>& calls) {
  std::vector<CoalescedCall> messages;
  for (const CoalescedCall& call : calls) {
    if (call.tag) messages.push_back(call);
  }
  std::ranges::stable_sort(messages, {}, &CoalescedCall::tag);
  auto next = messages.begin();
  for (CoalescedCall& call : calls) {
    if (call.tag) call = std::move(*next++);
  }
}

bool OperationQueue::is_coalescing() const {
  const std::lock_guard lock(mutex_);
  return coalesces();
}

c10::intrusive_ptr<Work> OperationQueue::defer(c10d::OpType type, const char* name,
                                               const at::Tensor& tensor) {
  require_dense(tensor, name);
  TORCH_CHECK_WITH(DistBackendError, !communicator_->is_in_forked_child(), "hccl_torch: ", name,
                   " on ", communicator_->describe(),
                   " in a forked process, which is not a member of the group; create a group in "
                   "the forked process");
  if (part_of(type) == kReceive) {
    require_writable(tensor, name);
  } else {
    require_readable(tensor, name);
  }
  if (tensor.is_hpu()) {
    auto users = DeviceWorks::instance().users_of(MemoryRange(tensor), nullptr);
    if (part_of(type) == kReceive) leave_receives_out(users, MemoryRange(tensor));
    for (const c10::intrusive_ptr<Work>& work : users) work->complete();
  }
  const std::lock_guard lock(mutex_);
  c10::intrusive_ptr<Work> work = make_work(type, name);
  if (part_of(type) == kReceive) work->operation().outputs = {tensor};
  if (tensor.is_hpu()) {
    work->operation().device_memory.push_back({MemoryRange(tensor), true});
    unfinished_->expect(work);
  }
  return work;
}

c10::intrusive_ptr<Work> OperationQueue::make_part(Work* whole, const char* name) {
  Operation operation;
  operation.type = c10d::OpType::RECV;
  operation.parts = kReceive;
  operation.is_part = true;
  operation.name = name;
  operation.sequence = whole != nullptr ? whole->operation().sequence : sequence();
  return c10::make_intrusive<Work>(communicator_, completer_, unfinished_, std::move(operation),
                                   nullptr);
}

std::uint64_t OperationQueue::sequence() const {
  const std::lock_guard lock(mutex_);
  return sequence_;
}

Issue::Issue(OperationQueue& queue, c10d::OpType type, const char* name)
    : Issue(queue, type, name, queue.communicator_->stream()) {
  has_messages_ = false;
}

Issue::Issue(OperationQueue& queue, c10d::OpType type, const char* name, const Stream& stream)
    : queue_(queue),
      lock_(queue.mutex_),
      work_(queue.coalesces() ? queue.coalesced_ : queue.make_work(type, name)),
      name_(name),
      stream_(queue.coalesces() ? queue.communicator_->stream() : stream),
      is_coalesced_(queue.coalesces()),
      is_message_(part_of(type) != kCollective),
      steps_before_(operation().steps.size()),
      after_(stream_.queued()) {
  operation().parts |= part_of(type);
}

Issue::Issue(OperationQueue& queue, c10::intrusive_ptr<Work> work, const Stream& stream)
    : queue_(queue),
      lock_(queue.mutex_),
      work_(std::move(work)),
      name_(work_->operation().name),
      stream_(stream),
      is_coalesced_(false),
      is_message_(true),
      is_deferred_(true),
      after_(stream_.queued()) {}

Issue::~Issue() {
  if (!has_ended_) abandon();
}

// Drops its own steps, but begins the operation with the calls made so far: the tensors must stay
// alive until these calls have run. Does not begin a deferred operation: its only call has failed,
// and the thread that made the call fails the Work.
void Issue::abandon() {
  operation().steps.resize(steps_before_);
  if (!is_deferred_) hand_over();
}

void Issue::count(const at::Tensor& tensor, std::uint64_t& bytes) {
  bytes += tensor.nbytes();
  if (tensor.numel() > 0 &&
      (!tensor.is_contiguous() || !MemoryPool::instance().contains(tensor.const_data_ptr())))
    is_zero_copy_ = false;
}

// Returns whether the calls need a copy of the tensor. The library itself copies ordinary memory
// where it must.
bool Issue::needs_copy(const at::Tensor& tensor) {
  return !tensor.is_contiguous() || tensor.is_conj() || tensor.is_neg();
}

// Returns whether to check, before the call, that the tensor's memory is accessible. If the library
// finds inaccessible memory only when the operation runs, the whole group fails.
bool Issue::must_check(const at::Tensor& tensor) const {
  return needs_copy(tensor) || (has_messages_ && tensor.nbytes() >= kLeastChecked &&
                                !MemoryPool::instance().contains(tensor.const_data_ptr()));
}

at::Tensor Issue::copy_of(const at::Tensor& tensor, bool with_elements) {
  at::Tensor copy = empty_scratch(tensor.sizes(), tensor.scalar_type());
  if (with_elements) copy_into(copy, tensor);
  operation().buffers.push_back(copy);
  return copy;
}

// Operations on HPU tensors run in program order. For a deferred operation, defer() has already
// waited for the earlier ones.
bool Issue::order_behind_others(const at::Tensor& tensor, bool copies, Access access) {
  if (tensor.is_hpu() && !is_deferred_) {
    const DeviceUse use{MemoryRange(tensor), access != Access::reads};
    await_users_of(use);
    operation().device_memory.push_back(use);
  }
  return await_writers_of(tensor, copies, access);
}

void Issue::await_users_of(const DeviceUse& use) {
  if (!DeviceWorks::instance().any()) return;
  std::vector<c10::intrusive_ptr<Work>> users =
      DeviceWorks::instance().users_of(use.range, queue_.unfinished_.get());
  queue_.unfinished_->find_others_before(use, &stream_, users);
  if (is_message_ && use.is_written) leave_receives_out(users, use.range);
  await(users);
}

bool Issue::await_writers_of(const at::Tensor& tensor, bool also_without_step, Access access) {
  if (!tensor.has_storage()) return false;
  auto writers = queue_.unfinished_->find_writers_of(MemoryRange(tensor), also_without_step);
  const auto left = std::erase_if(writers, [&](const c10::intrusive_ptr<Work>& writer) {
    return !must_end_first(*writer, tensor.is_hpu(), access);
  });
  await(writers);
  return left != 0;
}

// Returns whether `writer` must end before this operation uses the memory. A message does not wait
// for a receive: the other rank may need this message before it sends the message for that receive.
// A send of an HPU tensor is the exception and waits. An operation that overwrites a tensor need
// not wait for operations on its own stream; see output().
bool Issue::must_end_first(const Work& writer, bool is_hpu, Access access) const {
  if (writer.has_run()) return true;
  if (is_message_ && writer.has_messages()) return is_hpu && access == Access::reads;
  return access != Access::overwrites || writer.lane() != &stream_;
}

void Issue::await(const std::vector<c10::intrusive_ptr<Work>>& works) {
  if (works.empty()) return;
  lock_.unlock();
  for (const c10::intrusive_ptr<Work>& work : works) work->complete();
  lock_.lock();
  if (!has_called_) after_ = stream_.queued();
}

void Issue::await_writers(const at::Tensor& tensor) {
  require_readable(tensor, name_);
  if (tensor.is_hpu() && !is_deferred_) await_users_of({MemoryRange(tensor), false});
  await_writers_of(tensor, true, Access::reads);
}

at::Tensor Issue::hold(const at::Tensor& tensor) {
  operation().buffers.push_back(host_alias(tensor));
  return operation().buffers.back();
}

at::Tensor Issue::input(const at::Tensor& tensor) {
  require_dense(tensor, name_);
  count(tensor, bytes_in_);
  const bool copies = needs_copy(tensor);
  if (must_check(tensor)) require_readable(tensor, name_);
  order_behind_others(tensor, copies, Access::reads);
  if (copies) return copy_of(tensor, true);
  return hold(tensor);
}

// Steps run in stream order. If a step of an earlier operation writes to the same memory, this
// operation therefore needs a step too.
at::Tensor Issue::output(at::Tensor& tensor, bool keeps) {
  require_dense(tensor, name_);
  count(tensor, keeps ? bytes_in_ : bytes_out_);
  if (!is_deferred_) operation().outputs.push_back(tensor);
  bool copies = needs_copy(tensor);
  if (order_behind_others(tensor, copies, keeps ? Access::changes : Access::overwrites))
    copies = true;
  operation().written.push_back(MemoryRange(tensor));
  if (copies || must_check(tensor)) require_writable(tensor, name_);
  if (!copies) return hold(tensor);
  at::Tensor copy = copy_of(tensor, keeps);
  then([tensor, copy, name = name_]() mutable { deliver_into(tensor, copy, name); });
  return copy;
}

void Issue::send(const at::Tensor& from, int peer, int tag) {
  call("hcclSend", [from, peer, comm = queue_.communicator_->get(), stream = stream()] {
    return hcclSend(from.data_ptr(), from.nbytes(), hcclUint8, peer, comm, stream);
  });
  if (is_coalesced_) queue_.coalesced_calls_.back().tag = tag;
}

void Issue::receive(const at::Tensor& to, int peer, int tag) {
  call("hcclRecv", [to, peer, comm = queue_.communicator_->get(), stream = stream()] {
    return hcclRecv(to.data_ptr(), to.nbytes(), hcclUint8, peer, comm, stream);
  });
  if (is_coalesced_) queue_.coalesced_calls_.back().tag = tag;
}

at::Tensor Issue::scratch(std::int64_t bytes) {
  at::Tensor memory = empty_scratch({bytes}, at::kByte);
  operation().buffers.push_back(memory);
  return memory;
}

void Issue::promise(const std::vector<at::Tensor>& tensors, bool are_written) {
  for (const at::Tensor& tensor : tensors) {
    require_dense(tensor, name_);
    operation().outputs.push_back(tensor);
    if (are_written) {
      require_writable(tensor, name_);
      operation().written.push_back(MemoryRange(tensor));
    }
    if (tensor.is_hpu())
      order_behind_others(tensor, true, are_written ? Access::overwrites : Access::reads);
  }
}

// Records the calls' stream positions in the Work, and begins the operation. In a coalescing block,
// end_coalescing() does this for the whole block. Without calls, there is nothing to wait for.
void Issue::hand_over() {
  if (is_coalesced_) return;
  const std::uint64_t last = stream_.queued();
  if (last != after_) work_->add({&stream_, after_, last});
  queue_.begin(work_);
}

void Issue::end_part() {
  has_ended_ = true;
  hand_over();
}

c10::intrusive_ptr<c10d::Work> Issue::end() {
  has_ended_ = true;
  hand_over();
  Statistics::instance().add(name_, bytes_in_ > 0 ? bytes_in_ : bytes_out_, is_zero_copy_);
  return work_;
}

void copy_into(at::Tensor& to, const at::Tensor& from) {
  const at::AutoDispatchBelowADInplaceOrView guard;
  host_alias(to).copy_(host_alias(from));
}

void deliver_into(at::Tensor& to, const at::Tensor& from, const char* call) {
  require_writable(to, call);
  copy_into(to, from);
}

}  // namespace hccl_torch
