// SPDX-License-Identifier: Apache-2.0
// Builds a wait-for graph from all ranks' answers. Each chain of waits, unless it is a cycle, ends
// at a rank that waits for no other rank and thus blocks the rest; the verdict names these ranks.
#include "bootstrap/stall_judge.h"

#include "bootstrap/messages.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace hccl::bootstrap {
namespace {

// The time from an inquiry to the first verdict. Every running rank answers immediately, with one
// answer for each call in which it waits. If all ranks have answered and their calls do not match,
// the server waits only kForFurtherAnswers more, for the answers of other streams. If a rank has
// not answered in time, the first verdict may blame it. At most kForAnswers later, a second verdict
// replaces the first, because a rank that was only short of CPU time may have answered by then.
constexpr std::chrono::milliseconds kForAnswers{400};
constexpr std::chrono::milliseconds kForFurtherAnswers{20};
// How long a suspected deadlock must last before it is reported: until then, another thread of the
// program may still make the missing call.
constexpr std::chrono::seconds kCertainty{1};

}  // namespace

void StallJudge::on_stuck(int rank, Waiting waiting) {
  const bool begins = askers_.empty();
  if (begins) {
    waiting_ = {};
    answered_.clear();
    is_second_ = false;
  }
  waiting_.add(rank, std::move(waiting));
  askers_.insert(rank);
  if (!begins) return;
  ranks_.broadcast(FrameType::inquiry, {});
  judge_after(kForAnswers);
}

void StallJudge::on_answer(int rank, Waiting waiting) {
  if (askers_.empty()) return;
  const bool is_last = !waiting.done;
  waiting_.add(rank, std::move(waiting));
  if (!is_last || !answered_.insert(rank).second) return;
  if (have_all_answered() && (is_second_ || !waiting_.mismatch().empty()))
    judge_after(kForFurtherAnswers);
}

bool StallJudge::have_all_answered() const {
  return std::ranges::all_of(ranks_.ranks(), [this](int rank) { return answered_.contains(rank); });
}

void StallJudge::judge_after(std::chrono::milliseconds delay) {
  judgement_.start(delay, [this] { judge(); });
}

void StallJudge::judge() {
  const std::string mismatch = waiting_.mismatch();
  const std::string deadlock = waiting_.deadlock();
  if (deadlock != suspected_) {
    suspected_ = deadlock;
    suspected_until_ = Deadline::after(kCertainty);
  }
  const bool is_deadlocked = !deadlock.empty() && suspected_until_.expired();
  if (!mismatch.empty() || is_deadlocked) {
    askers_.clear();
    return faults_.spread({hcclInvalidUsage, mismatch.empty() ? deadlock : mismatch});
  }
  const auto describe = [this](const std::vector<int>& ranks) {
    return rendezvous_.describe_ranks(ranks);
  };
  for (const int rank : askers_) {
    const std::string found = waiting_.root_cause(rank, faults_.departed(), describe);
    ranks_.send(rank, FrameType::verdict, serialize(Failure{hcclSystemError, found}));
  }
  if (std::exchange(is_second_, true) || have_all_answered()) {
    askers_.clear();
  } else {
    judge_after(kForAnswers);
  }
}

}  // namespace hccl::bootstrap
