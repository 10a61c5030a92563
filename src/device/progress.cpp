// SPDX-License-Identifier: Apache-2.0
// The record of failed work.
#include "device/progress.h"

namespace hccl::device {

namespace {
constexpr std::size_t kRememberedFailures = 1024;
}

void Progress::record_failure(std::uint64_t ticket, Outcome outcome) {
  const std::lock_guard lock(mutex_);
  if (!failures_.empty() && failures_.back().last + 1 == ticket &&
      failures_.back().outcome == outcome) {
    failures_.back().last = ticket;
  } else {
    if (failures_.size() == kRememberedFailures) {
      // The oldest two become one: rather a success too few than a failure.
      failures_[1].first = failures_[0].first;
      failures_.erase(failures_.begin());
    }
    failures_.push_back({ticket, ticket, outcome});
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
