// SPDX-License-Identifier: Apache-2.0
// Waits for streams and synchronises with them, and transfers the ownership of their queues between
// threads.
#include "device/stream.h"

#include "base/cancellation.h"
#include "base/syn_error.h"
#include "device/device.h"
#include "device/verified_buffers.h"

#include <algorithm>

namespace hccl::device {

Stream::Stream(Device& device, std::uint64_t id) : device_(device), id_(id), worker_(*this) {}

Stream::~Stream() { close(); }

void Stream::refuse() {
  throw SynError(synInvalidArgument,
                 "the stream has been destroyed; queue calls and end groups before you destroy it");
}

void Stream::close() {
  {
    const std::lock_guard lock(lock_);
    closing_.store(true, std::memory_order_relaxed);
  }
  for (bool has_run_all = false; !has_run_all;) {
    run_until(pushed());
    const std::lock_guard lock(lock_);  // emplace_behind() may have added work
    has_run_all = queued() == 0;
  }
  worker_.stop();
  HostEpoch::advance();
  std::vector<DestroyCallback> callbacks;
  {
    const std::lock_guard lock(destroy_callbacks_mutex_);
    callbacks.swap(destroy_callbacks_);
  }
  for (const DestroyCallback& callback : callbacks) {
    if (const auto owner = callback.owner.lock()) callback.action();
  }
}

void Stream::at_destruction(std::weak_ptr<const void> owner, std::function<void()> action) {
  const std::lock_guard lock(destroy_callbacks_mutex_);
  // Removes expired callbacks, because a stream may outlive any number of communicators.
  std::erase_if(destroy_callbacks_,
                [](const DestroyCallback& callback) { return callback.owner.expired(); });
  destroy_callbacks_.push_back({std::move(owner), std::move(action)});
}

bool Stream::run_owned(std::uint64_t ticket, Manner manner) {
  for (std::uint64_t next = progress_->completed() + 1; next <= ticket; ++next) {
    const Outcome outcome =
        queue_.run_next(*this, manner == Manner::opportunistic, progress_->poisons(next));
    if (outcome == Outcome::would_block) return false;
    progress_->complete(next, outcome);
    if (outcome == Outcome::failed) [[unlikely]]
      hold_behind_failure();
    if (manner == Manner::until_wanted && has_waiters()) return next == ticket;
  }
  return true;
}

// Releases the stream immediately if the failure has already been reported.
void Stream::hold_behind_failure() noexcept {
  const std::shared_ptr<WorkFailure> failure = progress_->take_new_poison();
  if (failure && !failure->hold(weak_from_this())) release(*failure);
}

void Stream::release(const WorkFailure& failure) noexcept {
  progress_->end_poison(failure, pushed());
}

WaitBudget Lookahead::wait_budget() const noexcept {
  if (!opportunistic_) return WaitBudget::unlimited;
  return stream_.has_room() ? WaitBudget::pauses_only : WaitBudget::no_sleep;
}

FailureNote Lookahead::failure() const { return stream_.progress()->failure(); }
std::uint64_t Lookahead::stream_id() const noexcept { return stream_.id(); }

bool Lookahead::host_is_waiting() const noexcept { return stream_.host_is_waiting(); }

bool Lookahead::may_begin() noexcept {
  if (!may_begin_) may_begin_ = host_is_waiting() && stream_.device().others_idle(stream_);
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
  waiting_host_threads_.fetch_add(attends, std::memory_order_relaxed);
  if (try_own() || wait_or_own(ticket)) {
    run_owned(ticket, Manner::steadily);
    disown();
  }
  waiting_host_threads_.fetch_sub(attends, std::memory_order_relaxed);
}

// The program may have other work to do after the deadline, so this thread runs only work that does
// not block. Running that work here saves waking the worker.
bool Stream::wait_until(std::uint64_t ticket, const Deadline& deadline) {
  if (progress_->reached(ticket)) return true;
  try_to_run(ticket, deadline);
  if (progress_->reached(ticket)) return true;
  hurry();
  progress_->wait_until(ticket, deadline);
  return progress_->reached(ticket);
}

// Waits until the owner reaches `ticket`, or until this thread becomes the owner. Returns whether
// this thread is the owner.
bool Stream::wait_or_own(std::uint64_t ticket) {
  waiters_.fetch_add(1, std::memory_order_seq_cst);
  bool owner = false;
  progress_->wait(ticket,
                  [&] { return progress_->reached(ticket) || (owner = owner || try_own()); });
  waiters_.fetch_sub(1, std::memory_order_seq_cst);
  if (!owner) pass_on();
  return owner;
}

// Wakes the worker if work is left without an owner. Called by a waiter that has not become the
// owner: the last owner may have woken this waiter in disown() instead of the worker.
void Stream::pass_on() {
  if (queued() != 0 && !owned_.load(std::memory_order_seq_cst) && worker_.is_asleep())
    worker_.ring();
}

Outcome Stream::synchronize(std::string* reason) {
  const std::uint64_t after = progress_->reported();
  const std::uint64_t ticket = pushed();
  run_until(ticket);
  HostEpoch::advance();
  const Outcome outcome = progress_->outcome(after, ticket, reason);
  if (outcome != Outcome::success) progress_->set_reported(ticket, pushed());
  return outcome;
}

bool Stream::query(Outcome* outcome, std::string* reason) {
  const std::uint64_t after = progress_->reported();
  const std::uint64_t ticket = pushed();
  if (!progress_->reached(ticket)) {
    hurry();
    return false;
  }
  HostEpoch::advance();
  *outcome = progress_->outcome(after, ticket, reason);
  return true;
}

void Stream::hurry() {
  if (!owned_.load(std::memory_order_seq_cst)) worker_.hurry();
}

Capture Stream::capture() {
  return {progress_, weak_from_this(), pushed(), progress_->reported(), WorkFailure::reports()};
}

// This stream takes over a failure of the captured work, because work on this stream may read the
// results. A failure that was reported before the capture does not count.
void Stream::follow(Capture capture) {
  if (capture.progress == nullptr || capture.progress == progress_) return;  // already in order
  if (capture.complete() && capture.outcome() == Outcome::success) return;
  enqueue(Ordering{[capture = std::move(capture), own = progress_.get()] {
    wait_for(capture);
    return own->take_over_failure(capture);
  }});
}

void Stream::wait_for(const Capture& capture) {
  if (capture.complete()) return;
  if (const auto stream = capture.stream.lock()) {
    stream->run_until(capture.ticket, false);
    return;
  }
  capture.progress->wait(capture.ticket, [&] { return capture.complete(); });
}

// Tries to own the queue only once, because more attempts would keep the queue from threads that
// may run it to the end.
void Stream::try_to_run(std::uint64_t ticket, const Deadline& deadline) {
  waiters_.fetch_add(1, std::memory_order_seq_cst);
  const bool owner = try_own();
  bool goes_on = owner;
  while (goes_on && !progress_->reached(ticket) && !deadline.expired())
    goes_on = run_owned(progress_->completed() + 1, Manner::opportunistic);
  waiters_.fetch_sub(1, std::memory_order_seq_cst);
  owner ? disown() : pass_on();
}

// Runs the queue on this thread, as a synchronising thread does: the commands are in this core's
// cache, and another thread would compete for the core. However, this thread may still have to
// queue work for which peers wait, so it runs no command that blocks. If no command could run,
// leaves the queue to the worker for the next kSkippedAttempts attempts.
void Stream::run_opportunistically(std::uint64_t ticket) {
  constexpr std::uint32_t kSkippedAttempts = 15;
  if (skipped_attempts_.load(std::memory_order_relaxed) != 0) {
    skipped_attempts_.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
  const std::uint64_t before = progress_->completed();
  waiters_.fetch_add(1, std::memory_order_seq_cst);
  Waiter waiter(WaitLadder::within_process());
  bool owner = try_own();
  while (!owner && !progress_->reached(ticket) && waiter.poll_again()) owner = try_own();
  if (owner) {
    runs_opportunistically_.store(run_owned(ticket, Manner::opportunistic) || has_room(),
                                  std::memory_order_relaxed);
  }
  waiters_.fetch_sub(1, std::memory_order_seq_cst);
  if (!owner) return pass_on();
  if (progress_->completed() == before)
    skipped_attempts_.store(kSkippedAttempts, std::memory_order_relaxed);
  disown();
}

// Waits until half of the queue has run, so that the producer does not wake up after each command.
// Checks at least every kPatience, and returns early if the queue has room or has made no progress.
void Stream::wait_for_room() {
  const CancellationBlock block;
  constexpr auto kPatience = std::chrono::milliseconds(20);
  const std::uint64_t pushed = queue_.pushed();
  const std::uint64_t half = pushed - std::min(pushed, least_full() / 2);
  run_opportunistically(half);
  std::uint64_t completed = progress_->completed();
  for (bool moves = true; moves && !has_room() && completed < half;) {
    hurry();
    progress_->wait_until(half, Deadline::after(kPatience));
    moves = progress_->completed() != completed;
    completed = progress_->completed();
  }
  // A thread may queue work for many devices before it synchronises, so a queue that makes no
  // progress must grow.
  full_.store(!has_room() && completed < half ? 2 * queued() : least_full(),
              std::memory_order_relaxed);
}

}  // namespace hccl::device
