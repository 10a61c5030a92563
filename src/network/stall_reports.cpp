// SPDX-License-Identifier: Apache-2.0
#include "network/stall_reports.h"

#include "base/text.h"

#include <algorithm>
#include <new>

namespace hccl::network {
namespace {

// The server gives its first verdict within 400 ms; the rest is a margin.
constexpr std::chrono::milliseconds kForVerdict{600};

}  // namespace

std::string CallPosition::text() const { return hccl::text("op ", number, " of stream ", stream); }

void StallReports::note_done(const CallPosition& position, const CollectiveCall& call) {
  const std::lock_guard lock(mutex_);
  done_[done_count_++ % kRemembered] = {position, call};
}

// Does not hold mutex_ while it sends: callbacks lock mutex_, and the thread that cuts the link
// waits for callbacks.
void StallReports::answer(const bootstrap::Waiting& waiting) const noexcept {
  const Link link = link_ ? link_() : nullptr;
  if (!link) return;
  try {
    std::vector<Done> done;
    {
      const std::lock_guard lock(mutex_);
      done.assign(done_.begin(),
                  done_.begin() + static_cast<std::ptrdiff_t>(std::min(done_count_, kRemembered)));
    }
    for (const Done& one : done) {
      link->answer(
          {one.position.text(), describe(one.call), std::string(one.position.algorithm), {}, true});
    }
    link->answer(waiting);  // comes last, because it marks the end of the answer
  } catch (const std::bad_alloc&) {
    // Without memory, this rank does not answer.
  }
}

bool StallReports::ask(const bootstrap::Waiting& waiting) {
  if (!link_) return false;
  {
    const std::lock_guard lock(mutex_);
    verdict_due_ = Deadline::after(kForVerdict);
  }
  if (const Link link = link_()) link->ask_who_is_missing(waiting);
  return true;
}

std::string StallReports::root_cause(const std::string& awaited, Time then) const {
  if (!link_) return awaited;
  const std::lock_guard lock(mutex_);
  if (!verdict_.empty() && verdict_time_ >= then) return verdict_;
  if (!verdict_due_.expired()) return awaited;
  const std::string silent = text(judge_, ", which does not answer (stopped or unreachable)");
  if (awaited == judge_) return silent;
  return text(silent, " and may be the cause; this rank itself waits for ", awaited);
}

int StallReports::departed_of(const std::vector<int>& ranks) const {
  const std::lock_guard lock(mutex_);
  for (const int rank : ranks) {
    if (departed_.contains(rank)) return rank;
  }
  return -1;
}

// Calls in progress answer on their own threads. If no call is in progress, this function answers
// that the rank waits for nothing.
void StallReports::on_inquiry() {
  asked_.fetch_add(1);
  if (calls_ == 0) answer({});
}

void StallReports::on_departed(int rank) {
  const std::lock_guard lock(mutex_);
  departed_.insert(rank);
  anybody_departed_ = true;
}

void StallReports::on_verdict(const std::string& root_cause) {
  const std::lock_guard lock(mutex_);
  verdict_ = root_cause;
  verdict_time_ = std::chrono::steady_clock::now();
}

}  // namespace hccl::network
