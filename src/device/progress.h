// SPDX-License-Identifier: Apache-2.0
// Records the position of a stream and the failures of its work. The record may outlive the stream,
// because events refer to it.
#pragma once

#include "base/deadline.h"
#include "base/waiter.h"
#include "device/work_failure.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace hccl::device {

class Stream;

// The failures are in order of severity, the worst first. would_block: an opportunistic run did not
// finish the work, which will run again.
enum class Outcome : std::uint8_t { success, failed, collective_failed, would_block };

struct Capture;

// Each piece of work on a stream has a ticket; tickets count up from 1. The work with ticket t is
// complete when completed() >= t. The owner of a stream is the thread that runs the stream's queue.
class Progress {
 public:
  Progress();

  [[nodiscard]] std::uint64_t completed() const noexcept {
    return completed_.load(std::memory_order_acquire);
  }
  [[nodiscard]] bool reached(std::uint64_t ticket) const noexcept { return completed() >= ticket; }

  // Records that the work with this ticket is complete. Called by the stream's owner, in ticket
  // order.
  void complete(std::uint64_t ticket, Outcome outcome) noexcept {
    if (outcome != Outcome::success) [[unlikely]]
      record_failure(ticket, outcome);
    completed_.store(ticket, std::memory_order_seq_cst);
    if (ticket >= wake_at_.load(std::memory_order_seq_cst)) [[unlikely]]
      wake();
  }

  // Blocks until `ready()` returns true. Evaluates `ready()` when `ticket` completes, after each
  // wake(), and at least once per second.
  template <class Ready>
  void wait(std::uint64_t ticket, Ready ready) noexcept {
    Waiter waiter(WaitLadder::within_process());
    while (!ready()) {
      if (!waiter.poll_again()) sleep_until(ticket, std::chrono::seconds(1), ready);
    }
  }
  // Blocks until `ticket` is complete or the deadline has passed.
  void wait_until(std::uint64_t ticket, const Deadline& deadline) noexcept {
    while (!reached(ticket) && !deadline.expired())
      sleep_until(ticket, deadline.remaining(), [&] { return reached(ticket); });
  }
  // Wakes all threads that wait for a ticket and, if notifications are pending, the notifier.
  void wake() noexcept;
  // Requests one wake() when `ticket` completes, or possibly when an earlier ticket does. A waiter
  // calls this before each check that precedes a sleep.
  void ask_to_be_woken_at(std::uint64_t ticket) noexcept;
  // Adds `change` to the number of notifications pending for this stream.
  void change_notifications(int change) noexcept {
    notifications_.fetch_add(change, std::memory_order_seq_cst);
  }

  // Returns the worst outcome of the work in (after, up_to]. Ignores the first `reports` failures
  // that were reported to the program (WorkFailure::reports()). If the outcome is a failure with a
  // known reason, and `reason` is not null, stores the reason there.
  [[nodiscard]] Outcome outcome(std::uint64_t after, std::uint64_t up_to,
                                std::string* reason = nullptr, std::uint64_t reports = 0) const {
    if (after >= up_to || last_failure_.load(std::memory_order_acquire) <= after)
      return Outcome::success;
    return search_failure(after, up_to, reports, reason);
  }

  // Returns the reason for the worst failure in (after, up_to], even if the failure has been
  // reported, or null if there is none. A failed copy is worse than a failed collective.
  [[nodiscard]] std::shared_ptr<const FailureNote> failure_in(std::uint64_t after,
                                                              std::uint64_t up_to) const noexcept {
    if (after >= up_to || last_failure_.load(std::memory_order_acquire) <= after) return nullptr;
    return find_note(after, up_to);
  }

  // Returns the outcome of work that was captured on another stream. If that work failed, the
  // command running on this stream takes over the failure. Called by this stream's owner.
  [[nodiscard]] Outcome take_over_failure(const Capture& capture) noexcept;

  // Returns whether an earlier failure suppresses the work with this ticket. A failed copy or fill
  // leaves wrong data, and therefore poisons the stream: all work that is queued behind it before
  // the failure is reported to the program fails as well, except Orderings. A failed collective
  // does not poison the stream; its communicator fails instead. Called by the owner.
  [[nodiscard]] bool poisons(std::uint64_t ticket) const noexcept {
    return ticket <= poisoned_until_.load(std::memory_order_relaxed);
  }
  // Returns the reason why the next command must fail without running. If that command need not
  // fail, returns the reason for the last failure that poisoned this stream. Called by the owner.
  [[nodiscard]] FailureNote failure() const;
  // Returns the failure that has just poisoned the stream, or null if there is none. Returns each
  // failure once. Called by the owner after complete().
  [[nodiscard]] std::shared_ptr<WorkFailure> take_new_poison() noexcept {
    return std::exchange(new_poison_, nullptr);
  }
  // Call when a failure that poisoned the stream has been reported to the program. The failure no
  // longer suppresses work with tickets above `pushed`.
  void end_poison(const WorkFailure& failure, std::uint64_t pushed) noexcept;

  // Returns the ticket up to which failures have been reported. A failure is reported when a wait
  // or a notification for the work gives the program the error.
  [[nodiscard]] std::uint64_t reported() const noexcept {
    return reported_.load(std::memory_order_acquire);
  }
  // Marks failures up to `ticket` as reported. They no longer suppress work with tickets above
  // `pushed`.
  void set_reported(std::uint64_t ticket, std::uint64_t pushed) noexcept;
  // Marks only the failures in (after, up_to] as reported. They no longer suppress work with
  // tickets above `pushed`.
  void report(std::uint64_t after, std::uint64_t up_to, std::uint64_t pushed) noexcept;

 private:
  // A range of tickets whose work failed for the same reason. For lack of space, note_interval()
  // may join two ranges with different reasons and the successful work between them.
  struct Interval {
    std::uint64_t first, last;
    Outcome outcome;
    std::shared_ptr<WorkFailure> failure;  // null if there was no memory to record it
  };
  struct Poison {
    std::shared_ptr<WorkFailure> failure;  // null if there was no memory to record it
    std::uint64_t until;
  };
  // Sleeps until wake() is called or the timeout has passed; does not sleep if `ready()` returns
  // true. Requests the wake-up only after bell_ counts this thread as a sleeper. If a wake() for an
  // earlier ticket then clears the request, that wake() also wakes this thread, which can request
  // again.
  template <class Ready>
  void sleep_until(std::uint64_t ticket, std::chrono::nanoseconds timeout, Ready ready) noexcept {
    bell_.sleep(timeout, [&] {
      ask_to_be_woken_at(ticket);
      return ready();
    });
  }
  void report_each(std::uint64_t after, std::uint64_t up_to, std::uint64_t pushed) noexcept;
  // Returns a failure in the range that has not been reported yet, or null if there is none. Also,
  // for tickets above `pushed`, ends the poisoning by failures that could not be recorded for lack
  // of memory.
  [[nodiscard]] std::shared_ptr<WorkFailure> next_to_report(std::uint64_t after,
                                                            std::uint64_t up_to,
                                                            std::uint64_t pushed) noexcept;
  // Records that all failures up to `ticket` have been reported.
  void advance_reported(std::uint64_t ticket) noexcept;
  [[nodiscard]] std::shared_ptr<const FailureNote> find_note(std::uint64_t after,
                                                             std::uint64_t up_to) const noexcept;
  void record_failure(std::uint64_t ticket, Outcome outcome) noexcept;
  // Call the next five functions with the lock held.
  [[nodiscard]] std::shared_ptr<WorkFailure> failure_of(std::uint64_t ticket,
                                                        Outcome outcome) noexcept;
  void note_interval(std::uint64_t ticket, Outcome outcome,
                     const std::shared_ptr<WorkFailure>& failure) noexcept;
  void poison(std::uint64_t ticket, const std::shared_ptr<WorkFailure>& failure) noexcept;
  [[nodiscard]] const Poison* active_poison(std::uint64_t ticket) const noexcept;
  void set_poisoned_until() noexcept;
  // Returns the worst of the intervals in the range, or null if there is none. Ignores the first
  // `reports` reported failures. Call with the lock held.
  [[nodiscard]] const Interval* worst(std::uint64_t after, std::uint64_t up_to,
                                      std::uint64_t reports) const noexcept;
  [[nodiscard]] Outcome search_failure(std::uint64_t after, std::uint64_t up_to,
                                       std::uint64_t reports, std::string* reason) const;

  std::atomic<std::uint64_t> completed_{0};
  std::atomic<std::uint64_t> last_failure_{0};
  std::atomic<std::uint64_t> reported_{0};
  std::atomic<std::uint64_t> poisoned_until_{0};
  // wake_at_: the lowest ticket for which a wake() is requested, or kNever. Completing an earlier
  // ticket makes no system call.
  static constexpr std::uint64_t kNever = ~0ull;
  std::atomic<std::uint64_t> wake_at_{kNever};
  std::atomic<int> notifications_{0};  // number pending in the notifier
  Doorbell bell_;
  mutable std::mutex mutex_;
  std::vector<Interval> failures_;  // by ticket, ascending
  std::vector<Poison> poisons_;
  std::shared_ptr<WorkFailure> spare_;  // for the next failure, when there may be no memory
  // The failure that the running command has taken over from another stream. Used only by the
  // owner.
  std::shared_ptr<WorkFailure> taken_over_;
  std::shared_ptr<WorkFailure> new_poison_;  // used only by the owner
};

// Identifies all work that was queued on a stream up to a certain point.
struct Capture {
  std::shared_ptr<Progress> progress;  // null if nothing was captured; then the capture is complete
  std::weak_ptr<Stream> stream;
  std::uint64_t ticket = 0;
  // Failures up to this ticket had already been reported at the time of the capture.
  std::uint64_t reported = 0;
  std::uint64_t reports = 0;  // WorkFailure::reports() at that time

  [[nodiscard]] bool complete() const noexcept { return !progress || progress->reached(ticket); }
  [[nodiscard]] Outcome outcome(std::string* reason = nullptr) const {
    return progress ? progress->outcome(reported, ticket, reason, reports) : Outcome::success;
  }
};

}  // namespace hccl::device
