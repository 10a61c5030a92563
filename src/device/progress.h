// SPDX-License-Identifier: Apache-2.0
// How far a stream has come and which of its work failed; outlives the stream, because events refer
// to it.
#pragma once

#include "base/deadline.h"
#include "base/waiter.h"

#include <hccl_types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace hccl::device {

class Stream;

// Left: work that is to be run again, because whoever ran it in passing would have had to wait.
enum class Outcome : std::uint8_t { success, failed, collective_failed, left };

// Why work failed.
struct FailureNote {
  hcclResult_t code = hcclInternalError;
  std::string text;

  friend bool operator==(const FailureNote&, const FailureNote&) = default;
};

// By a command that is about to return a failure: keeps why, for whoever waits for the command and
// for what is queued behind it. Uses no heap, so it works when memory is short; a text that does
// not fit is cut.
void explain_failure(hcclResult_t code, std::string_view text) noexcept;

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
    Waiter waiter(WaitLadder::yielding());
    while (!ready()) {
      if (!waiter.poll_again()) sleep_until(ticket, std::chrono::seconds(1), ready);
    }
  }
  // Sleeps until `ticket` is complete or the deadline has passed.
  void wait_until(std::uint64_t ticket, const Deadline& deadline) noexcept {
    while (!reached(ticket) && !deadline.expired())
      sleep_until(ticket, deadline.remaining(), [&] { return reached(ticket); });
  }
  void wake() noexcept {
    wake_at_.store(kNever, std::memory_order_seq_cst);
    bell_.ring();
  }

  // Whether work in (after, up_to] failed, and how. Writes the reason of the first failure to
  // `reason`, unless that is null.
  [[nodiscard]] Outcome outcome(std::uint64_t after, std::uint64_t up_to,
                                std::string* reason = nullptr) const {
    if (last_failure_.load(std::memory_order_acquire) <= after) return Outcome::success;
    return search_failure(after, up_to, reason);
  }

  // For work of this stream that waits for work of `other` in (after, ticket]: how the latter
  // ended. A failure comes over once, however often the two wait for each other. By this stream's
  // owner, for the command it runs.
  [[nodiscard]] Outcome take_over_failure(const Progress& other, std::uint64_t after,
                                          std::uint64_t ticket);

  // A failed copy or kernel leaves wrong data behind, so it poisons the stream: all work fails that
  // is queued before the program gets to know. A failed collective does not; its communicator
  // fails. By the owner.
  [[nodiscard]] bool poisons(std::uint64_t ticket) const noexcept {
    return ticket <= poisoned_until_.load(std::memory_order_relaxed);
  }
  // Returns why the stream was poisoned last.
  [[nodiscard]] FailureNote failure() const;

  // A failure is reported by whoever synchronises with it.
  [[nodiscard]] std::uint64_t reported() const noexcept {
    return reported_.load(std::memory_order_acquire);
  }
  // The program gets to know of failures up to `ticket`; what it queues behind `pushed` runs again.
  void set_reported(std::uint64_t ticket, std::uint64_t pushed) noexcept;

 private:
  struct Interval {
    std::uint64_t first, last;
    Outcome outcome;
    std::uint64_t origin;  // of the last: names a failure wherever it was taken over to
    std::shared_ptr<const FailureNote> note;  // null: not explained
  };
  void ask_to_be_woken_at(std::uint64_t ticket) noexcept;
  // Asks when it has announced itself: a wake-up that answers an earlier ask, and forgets this one,
  // is heard then.
  template <class Ready>
  void sleep_until(std::uint64_t ticket, std::chrono::nanoseconds timeout, Ready ready) noexcept {
    bell_.sleep(timeout, [&] {
      ask_to_be_woken_at(ticket);
      return ready();
    });
  }
  void record_failure(std::uint64_t ticket, Outcome outcome) noexcept;
  void remember(std::uint64_t origin) noexcept;
  [[nodiscard]] Outcome search_failure(std::uint64_t after, std::uint64_t up_to,
                                       std::string* reason) const;

  std::atomic<std::uint64_t> completed_{0};
  std::atomic<std::uint64_t> last_failure_{0};
  std::atomic<std::uint64_t> reported_{0};
  std::atomic<std::uint64_t> poisoned_until_{0};
  // The lowest ticket a sleeper waits for: completing others makes no system call.
  static constexpr std::uint64_t kNever = ~0ull;
  std::atomic<std::uint64_t> wake_at_{kNever};
  Doorbell bell_;
  mutable std::mutex mutex_;
  std::vector<Interval> failures_;    // ascending, not adjacent
  std::vector<std::uint64_t> known_;  // origins of failures of this stream, its own or taken over
  std::uint64_t taken_over_ = 0;      // the owner's: origin of the failure its command returns
  std::uint64_t poisoned_from_ = 0;   // the ticket that did
  std::shared_ptr<const FailureNote> poison_;  // and why
};

// A point in a stream's work: everything queued before it.
struct Capture {
  std::shared_ptr<Progress> progress;  // null: nothing was captured, complete from the start
  std::weak_ptr<Stream> stream;
  std::uint64_t ticket = 0;
  std::uint64_t reported = 0;  // failures up to here had been reported when this was captured

  [[nodiscard]] bool complete() const noexcept { return !progress || progress->reached(ticket); }
  [[nodiscard]] Outcome outcome(std::string* reason = nullptr) const {
    return progress ? progress->outcome(reported, ticket, reason) : Outcome::success;
  }
};

}  // namespace hccl::device
