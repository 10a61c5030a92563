// SPDX-License-Identifier: Apache-2.0
// Ownership of a stream's queue, waiting and synchronising.
#include "device/stream.h"

#include "device/device.h"

namespace hccl::device {

Stream::Stream(Device& device, std::uint64_t id) : device_(device), id_(id), worker_(*this) {}

Stream::~Stream() { close(); }

void Stream::close() {
  run_until(pushed());
  worker_.stop();
  std::vector<std::function<void()>> actions;
  {
    const std::lock_guard lock(actions_mutex_);
    actions.swap(at_destruction_);
  }
  for (const auto& action : actions) action();
}

void Stream::at_destruction(std::function<void()> action) {
  const std::lock_guard lock(actions_mutex_);
  at_destruction_.push_back(std::move(action));
}

bool Stream::run_owned(std::uint64_t ticket, bool leave_for_waiters) {
  for (std::uint64_t next = progress_->completed() + 1; next <= ticket; ++next) {
    progress_->complete(next, queue_.run_next(*this));
    if (leave_for_waiters && has_waiters()) return next == ticket;
  }
  return true;
}

bool Upcoming::attended() const noexcept { return stream_.attended(); }

bool Upcoming::may_begin() noexcept {
  if (!may_begin_) may_begin_ = attended() && stream_.device().others_idle(stream_);
  return *may_begin_;
}

void Stream::disown() {
  owned_.store(false, std::memory_order_seq_cst);
  if (queued() == 0) return;
  if (has_waiters()) {
    progress_->wake();
  } else if (worker_.is_asleep()) {
    worker_.ring();
  }
}

void Stream::run_until(std::uint64_t ticket, bool by_program) {
  if (progress_->reached(ticket)) return;
  const std::uint32_t attends = by_program ? 1 : 0;
  attended_.fetch_add(attends, std::memory_order_relaxed);
  if (try_own() || wait_or_own(ticket)) {
    run_owned(ticket, false);
    disown();
  }
  attended_.fetch_sub(attends, std::memory_order_relaxed);
}

// Waits for the owner to come to `ticket`, or to leave the queue to this thread: then true.
bool Stream::wait_or_own(std::uint64_t ticket) {
  waiters_.fetch_add(1, std::memory_order_seq_cst);
  bool owner = false;
  progress_->wait(ticket,
                  [&] { return progress_->reached(ticket) || (owner = owner || try_own()); });
  waiters_.fetch_sub(1, std::memory_order_seq_cst);
  // This waiter may have been the one the owner left the rest of the queue to.
  if (!owner && queued() != 0 && !owned_.load(std::memory_order_seq_cst) && worker_.is_asleep())
    worker_.ring();
  return owner;
}

Outcome Stream::synchronize() {
  const std::uint64_t after = progress_->reported();
  const std::uint64_t ticket = pushed();
  run_until(ticket);
  const Outcome outcome = progress_->outcome(after, ticket);
  if (outcome != Outcome::success) progress_->set_reported(ticket);
  return outcome;
}

bool Stream::query(Outcome* outcome) {
  const std::uint64_t after = progress_->reported();
  const std::uint64_t ticket = pushed();
  if (!progress_->reached(ticket)) {
    hurry();
    return false;
  }
  *outcome = progress_->outcome(after, ticket);
  return true;
}

void Stream::hurry() {
  if (!owned_.load(std::memory_order_seq_cst)) worker_.hurry();
}

Capture Stream::capture() { return {progress_, weak_from_this(), pushed(), progress_->reported()}; }

void Stream::wait_for(const Capture& capture) {
  if (capture.complete()) return;
  if (const auto stream = capture.stream.lock()) {
    stream->run_until(capture.ticket, false);
    return;
  }
  capture.progress->wait(capture.ticket, [&] { return capture.complete(); });
}

void Stream::wait_for_room() {
  // Somebody may queue for many devices and synchronise only then, so a queue that does not move
  // must grow. Waking up only when half of it has run keeps the enqueuer out of the way of the
  // work.
  constexpr auto kPatience = std::chrono::milliseconds(20);
  const std::uint64_t half = queue_.pushed() - kFullQueue / 2;
  std::uint64_t before = progress_->completed();
  for (;;) {
    hurry();
    progress_->wait_until(half, Deadline::after(kPatience));
    const std::uint64_t completed = progress_->completed();
    if (completed >= half || completed == before) return;
    before = completed;
  }
}

}  // namespace hccl::device
