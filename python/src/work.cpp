// SPDX-License-Identifier: Apache-2.0
#include "work.h"

#include <chrono>
#include <utility>

#include <ATen/core/ivalue.h>
#include <c10/util/Exception.h>

namespace hccl_torch {

Work::Work(int rank, std::shared_ptr<Communicator> communicator,
           std::shared_ptr<Completer> completer, Operation operation)
    : c10d::Work(rank, operation.type),
      communicator_(std::move(communicator)),
      completer_(std::move(completer)),
      operation_(std::move(operation)) {}

void Work::begin() { event_.emplace(communicator_->stream()); }

bool Work::isCompleted() {
  {
    const std::lock_guard lock(mutex_);
    if (completed_) return true;
  }
  if (!event_ || !event_->has_ended()) return false;
  complete();
  return true;
}

bool Work::isSuccess() const {
  const std::lock_guard lock(mutex_);
  return completed_ && !exception_;
}

std::vector<at::Tensor> Work::result() { return operation_.outputs; }

void Work::synchronize() { wait(kNoTimeout); }

bool Work::wait(std::chrono::milliseconds timeout) {
  TORCH_CHECK_WITH(DistBackendError, event_, "hccl_torch: ", operation_.name,
                   " is part of a coalesced call; wait for that one");
  if (timeout > kNoTimeout) {
    // Polls: the C API has no wait with a limit yet.
    const auto end = std::chrono::steady_clock::now() + timeout;
    while (!isCompleted()) {
      TORCH_CHECK_WITH(DistBackendError, std::chrono::steady_clock::now() < end,
                       "hccl_torch: ", operation_.name, " #", operation_.sequence, " on group ",
                       operation_.group, " has not ended after ", timeout.count(), " ms");
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }
  complete();
  const std::lock_guard lock(mutex_);
  if (exception_) std::rethrow_exception(exception_);
  return true;
}

void Work::abort() { communicator_->abort(); }

std::uint64_t Work::getSequencenumber() const { return operation_.sequence; }

c10::intrusive_ptr<c10::ivalue::Future> Work::getFuture() {
  bool settled = false;
  {
    const std::lock_guard lock(mutex_);
    if (future_) return future_;
    future_ =
        c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
    settled = settled_;
  }
  if (!settled) {
    completer_->post(c10::intrusive_ptr<Work>::reclaim_copy(this));
  } else if (exception_) {
    future_->setError(exception_);
  } else {
    future_->markCompleted(c10::IValue(operation_.outputs));
  }
  return future_;
}

// Throws nothing: an error of a step is the operation's.
std::exception_ptr Work::end(bool succeeded) {
  try {
    if (!succeeded) {
      const std::string fault = communicator_->fault();
      C10_THROW_ERROR(DistBackendError,
                      c10::str("hccl_torch: ", operation_.name, " #", operation_.sequence,
                               " on group ", operation_.group, " failed: ",
                               fault.empty() ? synGetLastErrorMessage() : fault.c_str()));
    }
    for (const auto& step : operation_.steps) step();
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

void Work::complete() {
  c10::intrusive_ptr<c10::ivalue::Future> future;
  std::exception_ptr error;
  {
    const std::lock_guard ending(end_mutex_);
    {
      const std::lock_guard lock(mutex_);
      if (completed_) return;
    }
    error = end(event_->synchronize());
    operation_.buffers.clear();
    operation_.steps.clear();
    finish(error);
    const std::lock_guard lock(mutex_);
    future = future_;
    settled_ = true;
  }
  // Without a lock: the future's callbacks may call anything.
  if (!future) return;
  if (error) {
    future->setError(error);
  } else {
    future->markCompleted(c10::IValue(operation_.outputs));
  }
}

Completer::~Completer() {
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->stopping = true;
  }
  queue_->changed.notify_one();
  if (!thread_.joinable()) return;
  // The last reference may be that of a callback on the thread itself.
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

void Completer::post(c10::intrusive_ptr<Work> work) {
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->works.push_back(std::move(work));
    if (!thread_.joinable()) thread_ = std::thread(run, queue_);
  }
  queue_->changed.notify_one();
}

void Completer::run(const std::shared_ptr<Queue>& queue) {
  std::unique_lock lock(queue->mutex);
  for (;;) {
    queue->changed.wait(lock, [&] { return queue->stopping || !queue->works.empty(); });
    if (queue->works.empty()) return;
    c10::intrusive_ptr<Work> work = std::move(queue->works.front());
    queue->works.pop_front();
    lock.unlock();
    work->complete();
    work.reset();
    lock.lock();
  }
}

}  // namespace hccl_torch
