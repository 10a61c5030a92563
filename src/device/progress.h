// SPDX-License-Identifier: Apache-2.0
// How far a stream has come and which of its work failed; outlives the stream, because events refer
// to it.
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

// In a list of failures the first is the worst. Left: work that is to be run again,
// because whoever ran it in passing would have had to wait.
enum class Outcome : std::uint8_t { success, failed, collective_failed, would_block };

struct Capture;

// Tickets number the work of a stream from 1; work with ticket t is complete when completed() >= t.
class Progress {
 public:
  Progress();

  [[nodiscard]] std::uint64_t completed() const noexcept {
    return completed_.load(std::memory_order_acquire);
  }
  [[nodiscard]] bool reached(std::uint64_t ticket) const noexcept { return completed() >= ticket; }

  // By the stream's owner, in ticket order.
  void complete(std::uint64_t ticket, Outcome outcome) noexcept {
    if (outcome != Outcome::success) [[unlikely]]
      record_failure(ticket, outcome);
    completed_.store(ticket, std::memory_order_seq_cst);
    if (ticket >= wake_at_.load(std::memory_order_seq_cst)) [[unlikely]]
      wake();
  }

  // Waits until `ready()`, which is looked at when `ticket` is complete and whenever wake() is
  // called.
  template <class Ready>
  void wait(std::uint64_t ticket, Ready ready) noexcept {
    Waiter waiter(WaitLadder::within_process());
    while (!ready()) {
      if (!waiter.poll_again()) sleep_until(ticket, std::chrono::seconds(1), ready);
    }
  }
  // Sleeps until `ticket` is complete or the deadline has passed.
  void wait_until(std::uint64_t ticket, const Deadline& deadline) noexcept {
    while (!reached(ticket) && !deadline.expired())
      sleep_until(ticket, deadline.remaining(), [&] { return reached(ticket); });
  }
  // Makes everybody look again who waits for a ticket: the sleepers, and the notifier.
  void wake() noexcept;
  // By a waiter, before it looks again and sleeps: completing `ticket` calls wake(). So may
  // completing an earlier one; then the waiter must ask anew.
  void ask_to_be_woken_at(std::uint64_t ticket) noexcept;
  // Makes wake() ring the notifier, which has `change` more notifications to give, or less.
  void change_notifications(int change) noexcept {
    notifications_.fetch_add(change, std::memory_order_seq_cst);
  }

  // Returns how work in (after, up_to] failed, or success: a failed copy rather than a failed
  // collective. Leaves out failures that the program knew when `reports` had been made. Writes the
  // reason to `reason`, unless that is null.
  [[nodiscard]] Outcome outcome(std::uint64_t after, std::uint64_t up_to,
                                std::string* reason = nullptr, std::uint64_t reports = 0) const {
    if (after >= up_to || last_failure_.load(std::memory_order_acquire) <= after)
      return Outcome::success;
    return search_failure(after, up_to, reports, reason);
  }

  // Returns why work in (after, up_to] failed, also if the program knows it; null if none did. A
  // failed copy goes before a failed collective.
  [[nodiscard]] std::shared_ptr<const FailureNote> failure_in(std::uint64_t after,
                                                              std::uint64_t up_to) const noexcept {
    if (after >= up_to || last_failure_.load(std::memory_order_acquire) <= after) return nullptr;
    return find_note(after, up_to);
  }

  // By this stream's owner, for a command that waits for what was captured of another stream:
  // returns how that ended. A failure becomes the command's own.
  [[nodiscard]] Outcome take_over_failure(const Capture& capture) noexcept;

  // A failed copy or kernel leaves wrong data behind, so it poisons the stream: all work fails that
  // is queued before the program gets to know. A failed collective does not; its communicator
  // fails. By the owner.
  [[nodiscard]] bool poisons(std::uint64_t ticket) const noexcept {
    return ticket <= poisoned_until_.load(std::memory_order_relaxed);
  }
  // By the owner: returns why the work that comes next may not run, or why the last that was held
  // did not.
  [[nodiscard]] FailureNote failure() const;
  // By the owner, behind complete(): returns the failure that has poisoned the stream with it,
  // once.
  [[nodiscard]] std::shared_ptr<WorkFailure> take_new_poison() noexcept {
    return std::exchange(new_poison_, nullptr);
  }
  // The program knows of the failure: what it queues behind `pushed` runs again.
  void end_poison(const WorkFailure& failure, std::uint64_t pushed) noexcept;

  // A failure is reported by whoever synchronises with it.
  [[nodiscard]] std::uint64_t reported() const noexcept {
    return reported_.load(std::memory_order_acquire);
  }
  // The program gets to know of failures up to `ticket`; what it queues behind `pushed` runs again.
  void set_reported(std::uint64_t ticket, std::uint64_t pushed) noexcept;
  // The same for failures in (after, up_to] alone. Others remain to be reported.
  void report(std::uint64_t after, std::uint64_t up_to, std::uint64_t pushed) noexcept;

 private:
  // Work that failed for one reason.
  struct Interval {
    std::uint64_t first, last;
    Outcome outcome;
    std::shared_ptr<WorkFailure> failure;  // null: no memory was left to tell it from others
  };
  struct Poison {
    std::shared_ptr<WorkFailure> failure;  // as in an interval
    std::uint64_t until;
  };
  // Asks when it has announced itself: a wake-up that answers an earlier ask, and forgets this one,
  // is heard then.
  template <class Ready>
  void sleep_until(std::uint64_t ticket, std::chrono::nanoseconds timeout, Ready ready) noexcept {
    bell_.sleep(timeout, [&] {
      ask_to_be_woken_at(ticket);
      return ready();
    });
  }
  void report_each(std::uint64_t after, std::uint64_t up_to, std::uint64_t pushed) noexcept;
  // Returns a failure in the range that the program does not know yet, null if there is none.
  // Ends what failed without memory to tell it from others.
  [[nodiscard]] std::shared_ptr<WorkFailure> next_to_report(std::uint64_t after,
                                                            std::uint64_t up_to,
                                                            std::uint64_t pushed) noexcept;
  // Notes that the program knows all failures up to `ticket`.
  void advance_reported(std::uint64_t ticket) noexcept;
  [[nodiscard]] std::shared_ptr<const FailureNote> find_note(std::uint64_t after,
                                                             std::uint64_t up_to) const noexcept;
  void record_failure(std::uint64_t ticket, Outcome outcome) noexcept;
  // With the lock held.
  [[nodiscard]] std::shared_ptr<WorkFailure> failure_of(std::uint64_t ticket,
                                                        Outcome outcome) noexcept;
  void note_interval(std::uint64_t ticket, Outcome outcome,
                     const std::shared_ptr<WorkFailure>& failure) noexcept;
  void poison(std::uint64_t ticket, const std::shared_ptr<WorkFailure>& failure) noexcept;
  [[nodiscard]] const Poison* active_poison(std::uint64_t ticket) const noexcept;
  void set_poisoned_until() noexcept;
  // Returns the worst of the intervals in the range, null if there is none. With the lock held.
  [[nodiscard]] const Interval* worst(std::uint64_t after, std::uint64_t up_to,
                                      std::uint64_t reports) const noexcept;
  [[nodiscard]] Outcome search_failure(std::uint64_t after, std::uint64_t up_to,
                                       std::uint64_t reports, std::string* reason) const;

  std::atomic<std::uint64_t> completed_{0};
  std::atomic<std::uint64_t> last_failure_{0};
  std::atomic<std::uint64_t> reported_{0};
  std::atomic<std::uint64_t> poisoned_until_{0};
  // The lowest ticket a sleeper waits for: completing others makes no system call.
  static constexpr std::uint64_t kNever = ~0ull;
  std::atomic<std::uint64_t> wake_at_{kNever};
  std::atomic<int> notifications_{0};  // that the notifier has to give
  Doorbell bell_;
  mutable std::mutex mutex_;
  std::vector<Interval> failures_;  // ascending; neighbours differ
  std::vector<Poison> poisons_;
  std::shared_ptr<WorkFailure> spare_;  // for the next failure, for which there may be no memory
  std::shared_ptr<WorkFailure> taken_over_;  // the owner's: the failure that its command returns
  std::shared_ptr<WorkFailure> new_poison_;  // the owner's
};

// A point in a stream's work: everything queued before it.
struct Capture {
  std::shared_ptr<Progress> progress;  // null: nothing was captured, complete from the start
  std::weak_ptr<Stream> stream;
  std::uint64_t ticket = 0;
  std::uint64_t reported = 0;  // failures up to here had been reported when this was captured
  std::uint64_t reports = 0;   // and as many had been, of all streams

  [[nodiscard]] bool complete() const noexcept { return !progress || progress->reached(ticket); }
  [[nodiscard]] Outcome outcome(std::string* reason = nullptr) const {
    return progress ? progress->outcome(reported, ticket, reason, reports) : Outcome::success;
  }
};

}  // namespace hccl::device
