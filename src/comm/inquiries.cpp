// SPDX-License-Identifier: Apache-2.0
#include "comm/inquiries.h"

#include "base/text.h"

#include <algorithm>

namespace hccl::comm {

std::string Place::text() const { return hccl::text("op ", number, " of stream ", stream); }

void Inquiries::note_done(const Place& place, const node::CollectiveCall& call) {
  const std::lock_guard lock(mutex_);
  done_[done_count_++ % kRemembered] = {place, call};
}

void Inquiries::answer(const bootstrap::Waiting& waiting) const {
  if (!control_.answer) return;
  control_.answer(waiting);
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < std::min(done_count_, kRemembered); ++i) {
    const Done& one = done_[i];
    control_.answer({one.place.text(), node::describe(one.call), {}, true});
  }
}

void Inquiries::ask(const bootstrap::Waiting& waiting) {
  if (!control_.ask) return;
  {
    const std::lock_guard lock(mutex_);
    verdict_.clear();
  }
  control_.ask(waiting);
}

std::string Inquiries::culprits(const std::string& awaited) const {
  if (!control_.ask) return awaited;
  const std::lock_guard lock(mutex_);
  if (!verdict_.empty()) return verdict_;
  return text(awaited, " (", control_.judge, ", which would know more, does not answer)");
}

int Inquiries::departed_of(const std::vector<int>& ranks) const {
  const std::lock_guard lock(mutex_);
  for (const int rank : ranks) {
    if (departed_.contains(rank)) return rank;
  }
  return -1;
}

// Calls answer for themselves; where none runs there is nothing that this rank waits for.
void Inquiries::on_inquiry() {
  asked_.fetch_add(1, std::memory_order_acq_rel);
  if (calls_ == 0) answer({});
}

void Inquiries::on_departed(int rank) {
  const std::lock_guard lock(mutex_);
  departed_.insert(rank);
  anybody_departed_ = true;
}

void Inquiries::on_verdict(const std::string& culprits) {
  const std::lock_guard lock(mutex_);
  verdict_ = culprits;
}

}  // namespace hccl::comm
