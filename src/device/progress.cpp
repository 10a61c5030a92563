// SPDX-License-Identifier: Apache-2.0
// The record of failed work.
#include "device/progress.h"

#include <algorithm>
#include <utility>

namespace hccl::device {

namespace {

constexpr std::size_t kRememberedFailures = 1024;

std::uint64_t next_origin() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

void Progress::record_failure(std::uint64_t ticket, Outcome outcome) {
  const std::lock_guard lock(mutex_);
  std::uint64_t origin = std::exchange(taken_over_, 0);
  if (origin == 0) {
    origin = next_origin();
    remember(origin);
  }
  if (!failures_.empty() && failures_.back().last + 1 == ticket &&
      failures_.back().outcome == outcome) {
    failures_.back().last = ticket;
    failures_.back().origin = origin;
  } else {
    if (failures_.size() == kRememberedFailures) {
      // The oldest two become one: rather a success too few than a failure.
      failures_[1].first = failures_[0].first;
      failures_.erase(failures_.begin());
    }
    failures_.push_back({ticket, ticket, outcome, origin});
  }
  last_failure_.store(ticket, std::memory_order_release);
}

Outcome Progress::search_failure(std::uint64_t after, std::uint64_t up_to) const {
  const std::lock_guard lock(mutex_);
  for (const Interval& failure : failures_) {
    if (failure.last > after && failure.first <= up_to) return failure.outcome;
  }
  return Outcome::success;
}

void Progress::remember(std::uint64_t origin) {
  if (known_.size() == kRememberedFailures) known_.erase(known_.begin());
  known_.push_back(origin);
}

Outcome Progress::take_over_failure(const Progress& other, std::uint64_t ticket) {
  const std::uint64_t after = other.reported();
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

void Progress::set_reported(std::uint64_t ticket) noexcept {
  std::uint64_t seen = reported_.load(std::memory_order_relaxed);
  while (seen < ticket &&
         !reported_.compare_exchange_weak(seen, ticket, std::memory_order_acq_rel)) {
  }
}

}  // namespace hccl::device
