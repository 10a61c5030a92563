// SPDX-License-Identifier: Apache-2.0
// Records failed work, and which failures have been reported to the program.
#include "device/progress.h"

#include "device/notifier.h"

#include <algorithm>
#include <new>

namespace hccl::device {

namespace {

constexpr std::size_t kRememberedFailures = 256;
// Maximum number of failures that can poison a stream at the same time.
constexpr std::size_t kRememberedPoisons = 16;

std::shared_ptr<WorkFailure> make_failure() noexcept {
  try {
    return std::make_shared<WorkFailure>();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

bool are_alike(const std::shared_ptr<const FailureNote>& one,
               const std::shared_ptr<const FailureNote>& other) noexcept {
  return one == other || (one && other && *one == *other);
}

// Returns the note of a failure whose reason could not be stored. The first call creates the note,
// which is never destroyed. The constructor of Progress makes that call, because there may be no
// memory for the note when a failure occurs.
const FailureNote& unexplained() {
  static const auto* const note = new FailureNote{
      hcclInternalError, "there was no memory to store the reason; free memory on this host"};
  return *note;
}

}  // namespace

// Reserves memory in advance: out-of-memory failures must be recorded too, and the owner of a queue
// must not throw while it records a failure.
Progress::Progress() : spare_(std::make_shared<WorkFailure>()) {
  failures_.reserve(kRememberedFailures);
  poisons_.reserve(kRememberedPoisons);
  static_cast<void>(unexplained());
}

void Progress::wake() noexcept {
  wake_at_.store(kNever, std::memory_order_seq_cst);
  bell_.ring();
  if (notifications_.load(std::memory_order_seq_cst) != 0) Notifier::instance().ring();
}

void Progress::record_failure(std::uint64_t ticket, Outcome outcome) noexcept {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<WorkFailure> failure = failure_of(ticket, outcome);
  if (outcome == Outcome::failed) poison(ticket, failure);
  note_interval(ticket, outcome, failure);
  last_failure_.store(ticket, std::memory_order_release);
}

// Returns the record of the failure, or null if there is no memory for it. Reuses the record of an
// earlier failure in three cases: the command has taken that failure over from another stream; that
// failure has suppressed the command; or that failure is the previous one, has the same outcome and
// reason, and has not been reported.
std::shared_ptr<WorkFailure> Progress::failure_of(std::uint64_t ticket, Outcome outcome) noexcept {
  std::shared_ptr<const FailureNote> note = take_explanation();
  if (taken_over_) return std::exchange(taken_over_, nullptr);
  const Poison* const active = active_poison(ticket);
  if (outcome == Outcome::failed && !note && active != nullptr) return active->failure;
  if (!failures_.empty()) {
    const Interval& last = failures_.back();
    if (last.outcome == outcome && last.failure && !last.failure->was_reported() &&
        are_alike(last.failure->note(), note))
      return last.failure;
  }
  if (!spare_) spare_ = make_failure();
  std::shared_ptr<WorkFailure> failure = std::exchange(spare_, make_failure());
  if (failure) failure->explain(std::move(note));
  return failure;
}

void Progress::note_interval(std::uint64_t ticket, Outcome outcome,
                             const std::shared_ptr<WorkFailure>& failure) noexcept {
  if (!failures_.empty() && failures_.back().last + 1 == ticket &&
      failures_.back().outcome == outcome && failures_.back().failure == failure) {
    failures_.back().last = ticket;
    return;
  }
  if (failures_.size() == kRememberedFailures) {
    // Merges the two oldest records: reporting a success as a failure is better than losing a
    // failure.
    failures_[1].first = failures_[0].first;
    failures_[1].outcome = std::min(failures_[0].outcome, failures_[1].outcome);
    failures_.erase(failures_.begin());
  }
  failures_.push_back({ticket, ticket, outcome, failure});
}

void Progress::poison(std::uint64_t ticket, const std::shared_ptr<WorkFailure>& failure) noexcept {
  std::erase_if(poisons_, [&](const Poison& one) { return one.until < ticket; });
  for (const Poison& one : poisons_) {
    if (one.failure == failure && one.until == kNever) return;
  }
  if (poisons_.size() == kRememberedPoisons) poisons_.erase(poisons_.begin());
  poisons_.push_back({failure, kNever});
  new_poison_ = failure;
  set_poisoned_until();
}

const Progress::Poison* Progress::active_poison(std::uint64_t ticket) const noexcept {
  const Poison* found = nullptr;
  for (const Poison& one : poisons_) {
    if (one.until >= ticket) found = &one;
  }
  return found;
}

void Progress::set_poisoned_until() noexcept {
  std::uint64_t until = 0;
  for (const Poison& one : poisons_) until = std::max(until, one.until);
  poisoned_until_.store(until, std::memory_order_relaxed);
}

void Progress::end_poison(const WorkFailure& failure, std::uint64_t pushed) noexcept {
  const std::lock_guard lock(mutex_);
  for (Poison& one : poisons_) {
    if (one.failure.get() == &failure) one.until = std::min(one.until, pushed);
  }
  set_poisoned_until();
}

const Progress::Interval* Progress::worst(std::uint64_t after, std::uint64_t up_to,
                                          std::uint64_t reports) const noexcept {
  const Interval* found = nullptr;
  for (const Interval& one : failures_) {
    if (one.last <= after || one.first > up_to) continue;
    if (one.failure && one.failure->was_reported_by(reports)) continue;
    if (found == nullptr || one.outcome < found->outcome) found = &one;
  }
  return found;
}

Outcome Progress::search_failure(std::uint64_t after, std::uint64_t up_to, std::uint64_t reports,
                                 std::string* reason) const {
  const std::lock_guard lock(mutex_);
  const Interval* const found = worst(after, up_to, reports);
  if (found == nullptr) return Outcome::success;
  if (reason != nullptr && found->failure && found->failure->note())
    *reason = found->failure->note()->text;
  return found->outcome;
}

Outcome Progress::take_over_failure(const Capture& capture) noexcept {
  const Progress& other = *capture.progress;
  if (other.last_failure_.load(std::memory_order_acquire) <= capture.reported)
    return Outcome::success;
  const std::lock_guard lock(other.mutex_);
  const Interval* const found = other.worst(capture.reported, capture.ticket, capture.reports);
  if (found == nullptr) return Outcome::success;
  taken_over_ = found->failure;
  return found->outcome;
}

void Progress::ask_to_be_woken_at(std::uint64_t ticket) noexcept {
  std::uint64_t earliest = wake_at_.load(std::memory_order_seq_cst);
  while (ticket < earliest &&
         !wake_at_.compare_exchange_weak(earliest, ticket, std::memory_order_seq_cst)) {
  }
}

FailureNote Progress::failure() const {
  const std::lock_guard lock(mutex_);
  const Poison* poison = active_poison(completed() + 1);
  if (poison == nullptr && !poisons_.empty()) poison = &poisons_.back();
  if (poison != nullptr && poison->failure && poison->failure->note())
    return *poison->failure->note();
  return unexplained();
}

std::shared_ptr<const FailureNote> Progress::find_note(std::uint64_t after,
                                                       std::uint64_t up_to) const noexcept {
  const std::lock_guard lock(mutex_);
  const Interval* const found = worst(after, up_to, 0);
  if (found == nullptr) return nullptr;
  if (found->failure && found->failure->note()) return found->failure->note();
  return {std::shared_ptr<const FailureNote>(), &unexplained()};
}

void Progress::advance_reported(std::uint64_t ticket) noexcept {
  std::uint64_t seen = reported_.load(std::memory_order_relaxed);
  while (seen < ticket &&
         !reported_.compare_exchange_weak(seen, ticket, std::memory_order_acq_rel)) {
  }
}

void Progress::set_reported(std::uint64_t ticket, std::uint64_t pushed) noexcept {
  advance_reported(ticket);
  report_each(0, ticket, pushed);
}

void Progress::report(std::uint64_t after, std::uint64_t up_to, std::uint64_t pushed) noexcept {
  report_each(after, up_to, pushed);
  const std::lock_guard lock(mutex_);
  const std::uint64_t known = reported();
  const bool knows_all = std::ranges::none_of(failures_, [&](const Interval& one) {
    return one.first <= up_to && one.last > known && !(one.failure && one.failure->was_reported());
  });
  if (knows_all) advance_reported(up_to);
}

// Calls WorkFailure::report() without the lock, because report() also ends the poisoning of other
// streams, for which it takes their locks.
void Progress::report_each(std::uint64_t after, std::uint64_t up_to,
                           std::uint64_t pushed) noexcept {
  while (const std::shared_ptr<WorkFailure> failure = next_to_report(after, up_to, pushed)) {
    failure->report();
    end_poison(*failure, pushed);
  }
}

std::shared_ptr<WorkFailure> Progress::next_to_report(std::uint64_t after, std::uint64_t up_to,
                                                      std::uint64_t pushed) noexcept {
  const std::lock_guard lock(mutex_);
  for (Poison& one : poisons_) {
    if (!one.failure) one.until = std::min(one.until, pushed);
  }
  set_poisoned_until();
  for (const Interval& one : failures_) {
    if (one.last > after && one.first <= up_to && one.failure && !one.failure->was_reported())
      return one.failure;
  }
  return nullptr;
}

}  // namespace hccl::device
