// SPDX-License-Identifier: Apache-2.0
// How far a stream has come and which of its work failed; outlives the stream, because events refer
// to it.
#pragma once

#include "base/deadline.h"
#include "base/waiter.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace hccl::device {

class Stream;

// Left: work that is to be run again, because whoever ran it in passing would have had to wait.
enum class Outcome : std::uint8_t { success, failed, collective_failed, left };

// Tickets number the work of a stream from 1; work with ticket t is complete when completed() >= t.
class Progress {
 public:
  [[nodiscard]] std::uint64_t completed() const noexcept {
    return completed_.load(std::memory_order_acquire);
  }
  [[nodiscard]] bool reached(std::uint64_t ticket) const noexcept { return completed() >= ticket; }

  // By the stream's owner, in ticket order.
  void complete(std::uint64_t ticket, Outcome outcome) {
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

  // Whether work in (after, up_to] failed, and how.
  [[nodiscard]] Outcome outcome(std::uint64_t after, std::uint64_t up_to) const {
    if (last_failure_.load(std::memory_order_acquire) <= after) return Outcome::success;
    return search_failure(after, up_to);
  }

  // For work of this stream that waits for work of `other` up to `ticket`: how the latter ended. A
  // failure comes over once, however often the two wait for each other, and not after it has been
  // reported there. By this stream's owner, for the command it runs.
  [[nodiscard]] Outcome take_over_failure(const Progress& other, std::uint64_t ticket);

  // A failure is reported by whoever synchronises with it; the stream itself is not poisoned by it.
  [[nodiscard]] std::uint64_t reported() const noexcept {
    return reported_.load(std::memory_order_acquire);
  }
  void set_reported(std::uint64_t ticket) noexcept;

 private:
  struct Interval {
    std::uint64_t first, last;
    Outcome outcome;
    std::uint64_t origin;  // of the last: names a failure wherever it was taken over to
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
  void record_failure(std::uint64_t ticket, Outcome outcome);
  void remember(std::uint64_t origin);
  [[nodiscard]] Outcome search_failure(std::uint64_t after, std::uint64_t up_to) const;

  std::atomic<std::uint64_t> completed_{0};
  std::atomic<std::uint64_t> last_failure_{0};
  std::atomic<std::uint64_t> reported_{0};
  // The lowest ticket a sleeper waits for: completing others makes no system call.
  static constexpr std::uint64_t kNever = ~0ull;
  std::atomic<std::uint64_t> wake_at_{kNever};
  Doorbell bell_;
  mutable std::mutex mutex_;
  std::vector<Interval> failures_;    // ascending, not adjacent
  std::vector<std::uint64_t> known_;  // origins of failures of this stream, its own or taken over
  std::uint64_t taken_over_ = 0;      // the owner's: origin of the failure its command returns
};

// A point in a stream's work: everything queued before it.
struct Capture {
  std::shared_ptr<Progress> progress;  // null: nothing was captured, complete from the start
  std::weak_ptr<Stream> stream;
  std::uint64_t ticket = 0;
  std::uint64_t reported = 0;  // failures up to here had been reported when this was captured

  [[nodiscard]] bool complete() const noexcept { return !progress || progress->reached(ticket); }
  [[nodiscard]] Outcome outcome() const {
    return progress ? progress->outcome(reported, ticket) : Outcome::success;
  }
};

}  // namespace hccl::device
