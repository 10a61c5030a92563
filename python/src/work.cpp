// SPDX-License-Identifier: Apache-2.0
#include "work.h"

#include "call.h"
#include "completer.h"
#include "unfinished_works.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include <ATen/core/ivalue.h>
#include <c10/util/Exception.h>

namespace hccl_torch {

namespace {

// Returns the device of the first HPU tensor, or an empty list if all tensors are on the CPU. A
// future needs this list.
std::vector<c10::Device> devices_of(const std::vector<at::Tensor>& tensors) {
  for (const at::Tensor& tensor : tensors) {
    if (tensor.defined() && tensor.is_hpu()) return {tensor.device()};
  }
  return {};
}

}  // namespace

Work::Work(std::shared_ptr<Communicator> communicator, std::shared_ptr<Completer> completer,
           std::shared_ptr<UnfinishedWorks> unfinished, Operation operation, const char* title)
    : c10d::Work(communicator->rank(), operation.type, title),
      communicator_(std::move(communicator)),
      completer_(std::move(completer)),
      unfinished_(std::move(unfinished)),
      operation_(std::move(operation)) {}

void Work::add(StreamRange range) {
  if (!ranges_.empty() && ranges_.back().stream == range.stream) {
    ranges_.back().last = range.last;
  } else {
    ranges_.push_back(std::move(range));
  }
}

bool Work::has_ended() const {
  const std::lock_guard lock(mutex_);
  return completed_;
}

void Work::begin() {
  {
    const std::lock_guard lock(mutex_);
    has_steps_ = !operation_.steps.empty();
    has_begun_ = true;
  }
  cv_.notify_all();
}

// Ends the operation with an error. If `reason` is an error text of this backend, removes the
// prefix of that text.
void Work::fail(const std::string& reason) {
  const std::string own = describe() + " failed: ";
  const std::string_view name = "hccl_torch: ";
  std::string_view rest = reason;
  for (const std::string_view prefix : {std::string_view(own), name}) {
    if (rest.starts_with(prefix)) rest.remove_prefix(prefix.size());
  }
  try {
    C10_THROW_ERROR(DistBackendError, c10::str(own, rest));
  } catch (const c10::Error&) {
    finish(std::current_exception());
  }
  unfinished_->forget(*this);
}

bool Work::has_begun_within(std::uint64_t milliseconds) {
  if (has_begun_) return true;
  std::unique_lock lock(mutex_);
  const auto ready = [&] { return has_begun_ || completed_; };
  if (milliseconds != HCCL_EMULATION_NO_TIMEOUT)
    return cv_.wait_for(lock, std::chrono::milliseconds(milliseconds), ready);
  cv_.wait(lock, ready);
  return true;
}

// May return true while another thread runs the steps, or after it has run them. complete() then
// waits for that thread, or returns immediately.
bool Work::writes_to(const MemoryRange& range, bool also_without_step) const {
  if (!has_begun_ || (!also_without_step && !has_steps_)) return false;
  return std::ranges::any_of(operation_.written,
                             [&](const MemoryRange& own) { return own.overlaps(range); });
}

bool Work::reads(const MemoryRange& range) const {
  return std::ranges::any_of(operation_.device_memory, [&](const DeviceUse& own) {
    return !own.is_written && own.range.overlaps(range);
  });
}

bool Work::uses(const MemoryRange& range) const { return conflicts_with({range, true}); }

bool Work::conflicts_with(const DeviceUse& use) const {
  return std::any_of(operation_.device_memory.begin(), operation_.device_memory.end(),
                     [&](const DeviceUse& own) {
                       return (own.is_written || use.is_written) && own.range.overlaps(use.range);
                     });
}

const void* Work::lane() const {
  if (!has_begun_ || ranges_.empty()) return this;
  return ranges_.front().stream;
}

bool Work::has_run() const {
  return has_begun_ && std::all_of(ranges_.begin(), ranges_.end(),
                                   [](const StreamRange& range) { return range.has_run(); });
}

bool Work::isCompleted() {
  if (has_ended()) return true;
  if (!has_begun_ || !complete_within(0)) return false;
  complete_future();
  return true;
}

bool Work::isSuccess() const {
  const std::lock_guard lock(mutex_);
  return completed_ && !exception_;
}

// Inside a coalescing block, the calls are not queued yet, so there is nothing to wait for. The
// program waits for the whole operation after the block.
bool Work::wait(std::chrono::milliseconds timeout) {
  if (operation_.type == c10d::OpType::COALESCED && !has_begun_) return true;
  if (timeout <= kNoTimeout) timeout = operation_.timeout;
  if (!has_ended()) {
    const bool is_limited = timeout > kNoTimeout;
    const std::uint64_t limit =
        is_limited ? static_cast<std::uint64_t>(timeout.count()) : HCCL_EMULATION_NO_TIMEOUT;
    if (!complete_within(limit)) {
      C10_THROW_ERROR(
          DistBackendError,
          c10::str(describe(), " has not ended: Timed out waiting ", timeout.count(),
                   "ms; check that every rank of the group makes this call, or wait longer"));
    }
    complete_future();
  }
  const std::lock_guard lock(mutex_);
  if (exception_) std::rethrow_exception(exception_);
  return true;
}

c10::intrusive_ptr<c10::ivalue::Future> Work::getFuture() {
  bool ended = false;
  c10::intrusive_ptr<c10::ivalue::Future> future;
  {
    const std::lock_guard lock(mutex_);
    if (future_) return future_;
    future_ = c10::make_intrusive<c10::ivalue::Future>(
        c10::ListType::create(c10::TensorType::get()), devices_of(operation_.outputs));
    future = future_;
    ended = completed_;
  }
  if (ended) {
    complete_future();
  } else {
    completer_->post(c10::intrusive_ptr<Work>::reclaim_copy(this));
  }
  return future;
}

std::string Work::describe() const {
  return c10::str("hccl_torch: ", operation_.name, " #", operation_.sequence, " on ",
                  communicator_->describe());
}

void Work::throw_failed() const {
  C10_THROW_ERROR(DistBackendError, c10::str(describe(), " failed: ", last_reason()));
}

std::exception_ptr Work::end(hcclResult_t result) noexcept {
  try {
    if (result != hcclSuccess) throw_failed();
    for (const auto& step : operation_.steps) step();
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

void Work::complete() noexcept { static_cast<void>(complete_within(HCCL_EMULATION_NO_TIMEOUT)); }

bool Work::complete_within(std::uint64_t milliseconds) noexcept {
  const std::optional<std::exception_ptr> error = await_run(milliseconds);
  if (!error) return false;
  unfinished_->end_those_before(*this);
  conclude(*error);
  return true;
}

void Work::end_alone() noexcept { conclude(await_run(HCCL_EMULATION_NO_TIMEOUT).value()); }

std::optional<std::exception_ptr> Work::await_run(std::uint64_t milliseconds) noexcept {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto left = [&]() -> std::uint64_t {
    if (milliseconds == HCCL_EMULATION_NO_TIMEOUT) return milliseconds;
    const auto spent = std::chrono::ceil<std::chrono::milliseconds>(Clock::now() - start).count();
    return milliseconds - std::min(milliseconds, static_cast<std::uint64_t>(spent));
  };
  if (!has_begun_within(left())) return std::nullopt;
  std::exception_ptr error;
  for (const StreamRange& range : ranges_) {
    const hcclResult_t result = range.wait(left());
    if (result == hcclBusy) return std::nullopt;
    if (result != hcclSuccess && !error) error = end(result);
  }
  return error;
}

void Work::conclude(std::exception_ptr error) noexcept {
  const std::lock_guard ending(end_mutex_);
  if (has_ended()) return;
  if (!error) error = end(hcclSuccess);
  operation_.buffers.clear();
  operation_.steps.clear();
  finish(error);
}

// Completes the future without holding a lock, because the callbacks may call any function.
void Work::complete_future() noexcept {
  unfinished_->reap();
  c10::intrusive_ptr<c10::ivalue::Future> future;
  {
    const std::lock_guard lock(mutex_);
    if (!future_ || std::exchange(future_is_completed_, true)) return;
    future = future_;
  }
  if (exception_) {
    future->setError(exception_);
  } else {
    future->markCompleted(c10::IValue(operation_.outputs));
  }
}

}  // namespace hccl_torch
