// SPDX-License-Identifier: Apache-2.0
// The record of failed work.
#include "device/progress.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

namespace hccl::device {

namespace {

constexpr std::size_t kRememberedFailures = 256;

std::uint64_t next_origin() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

// What explain_failure() keeps for the command that runs on this thread. Plain storage: a thread
// may end after static objects are destroyed.
struct Explanation {
  hcclResult_t code;
  std::array<char, 1024> text;
  std::size_t length;
};
constinit thread_local Explanation explanation{};

// Null if there is none, or no memory for it.
std::shared_ptr<const FailureNote> take_explanation() noexcept {
  const std::size_t length = std::exchange(explanation.length, 0);
  if (length == 0) return nullptr;
  try {
    return std::make_shared<const FailureNote>(
        FailureNote{explanation.code, std::string(explanation.text.data(), length)});
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

bool are_alike(const std::shared_ptr<const FailureNote>& one,
               const std::shared_ptr<const FailureNote>& other) noexcept {
  return one == other || (one && other && *one == *other);
}

}  // namespace

void explain_failure(hcclResult_t code, std::string_view text) noexcept {
  explanation.code = code;
  explanation.length = std::min(text.size(), explanation.text.size());
  std::memcpy(explanation.text.data(), text.data(), explanation.length);
}

// Room for all that is ever noted: work that fails for lack of memory must be noted too, and by an
// owner of the queue that nothing may keep from giving it up.
Progress::Progress() {
  failures_.reserve(kRememberedFailures);
  known_.reserve(kRememberedFailures);
}

void Progress::record_failure(std::uint64_t ticket, Outcome outcome) noexcept {
  std::shared_ptr<const FailureNote> note = take_explanation();
  const std::lock_guard lock(mutex_);
  std::uint64_t origin = std::exchange(taken_over_, 0);
  if (outcome == Outcome::failed && !note) note = poison_;  // it did not run
  if (outcome == Outcome::failed && (origin != 0 || !poisons(ticket))) {
    poisoned_from_ = ticket;
    poison_ = note;
    poisoned_until_.store(kNever, std::memory_order_relaxed);
  }
  if (origin == 0) {
    origin = next_origin();
    remember(origin);
  }
  if (!failures_.empty() && failures_.back().last + 1 == ticket &&
      failures_.back().outcome == outcome && are_alike(failures_.back().note, note)) {
    failures_.back().last = ticket;
    failures_.back().origin = origin;
  } else {
    if (failures_.size() == kRememberedFailures) {
      // The oldest two become one: rather a success too few than a failure.
      failures_[1].first = failures_[0].first;
      failures_.erase(failures_.begin());
    }
    failures_.push_back({ticket, ticket, outcome, origin, std::move(note)});
  }
  last_failure_.store(ticket, std::memory_order_release);
}

Outcome Progress::search_failure(std::uint64_t after, std::uint64_t up_to,
                                 std::string* reason) const {
  const std::lock_guard lock(mutex_);
  for (const Interval& failure : failures_) {
    if (failure.last <= after || failure.first > up_to) continue;
    if (reason != nullptr && failure.note) *reason = failure.note->text;
    return failure.outcome;
  }
  return Outcome::success;
}

void Progress::remember(std::uint64_t origin) noexcept {
  if (known_.size() == kRememberedFailures) known_.erase(known_.begin());
  known_.push_back(origin);
}

Outcome Progress::take_over_failure(const Progress& other, std::uint64_t after,
                                    std::uint64_t ticket) {
  if (other.last_failure_.load(std::memory_order_acquire) <= after) return Outcome::success;
  std::vector<Interval> failures;
  {
    const std::lock_guard lock(other.mutex_);
    failures = other.failures_;
  }
  const std::lock_guard lock(mutex_);
  for (const Interval& failure : failures) {
    if (failure.last <= after || failure.first > ticket) continue;
    if (std::ranges::find(known_, failure.origin) != known_.end()) continue;
    remember(failure.origin);
    taken_over_ = failure.origin;
    if (failure.note) explain_failure(failure.note->code, failure.note->text);
    return failure.outcome;
  }
  return Outcome::success;
}

void Progress::ask_to_be_woken_at(std::uint64_t ticket) noexcept {
  std::uint64_t earliest = wake_at_.load(std::memory_order_seq_cst);
  while (ticket < earliest &&
         !wake_at_.compare_exchange_weak(earliest, ticket, std::memory_order_seq_cst)) {
  }
}

FailureNote Progress::failure() const {
  const std::lock_guard lock(mutex_);
  return poison_ ? *poison_
                 : FailureNote{hcclInternalError,
                               "no memory was left to say why; free memory on this host"};
}

void Progress::set_reported(std::uint64_t ticket, std::uint64_t pushed) noexcept {
  std::uint64_t seen = reported_.load(std::memory_order_relaxed);
  while (seen < ticket &&
         !reported_.compare_exchange_weak(seen, ticket, std::memory_order_acq_rel)) {
  }
  const std::lock_guard lock(mutex_);
  if (poisoned_until_.load(std::memory_order_relaxed) == kNever && poisoned_from_ <= ticket)
    poisoned_until_.store(pushed, std::memory_order_relaxed);
}

}  // namespace hccl::device
