// SPDX-License-Identifier: Apache-2.0
// A rank that has waited for long knows only whom it waits for itself, and that one may wait too.
// The server asks all, and names those at the end of the chain.
#include "base/text.h"
#include "bootstrap/root_server_io.h"

#include <algorithm>
#include <chrono>

namespace hccl::bootstrap {
namespace {

// Every rank that runs answers at once. Once all have, those with several streams get a moment
// more.
constexpr std::chrono::milliseconds kForAnswers{400};
constexpr std::chrono::milliseconds kForFurtherAnswers{20};
// Another thread of a program that waits may still make the call.
constexpr std::chrono::seconds kCertainty{1};

}  // namespace

void RootServer::on_stuck(const Session& session, Waiting waiting) {
  const bool begins = askers_.empty();
  if (begins) {
    waiting_ = {};
    answered_.clear();
  }
  waiting_.add(session.rank, std::move(waiting));
  askers_.insert(session.rank);
  if (!begins) return;
  broadcast(FrameType::inquiry, {});
  judge_after(kForAnswers);
}

// A rank tells of the calls that it has done before the one that it is in.
void RootServer::on_answer(const Session& session, Waiting waiting) {
  if (askers_.empty()) return;
  const bool is_last = !waiting.done;
  waiting_.add(session.rank, std::move(waiting));
  if (!is_last || !answered_.insert(session.rank).second) return;
  const auto silent = [this](const SessionPointer& one) {
    return one->rank >= 0 && !answered_.contains(one->rank);
  };
  if (std::ranges::none_of(sessions_, silent) && !waiting_.mismatch().empty())
    judge_after(kForFurtherAnswers);
}

void RootServer::judge_after(std::chrono::milliseconds delay) {
  io_->judgement.expires_after(delay);  // cancels what it was set to
  io_->judgement.async_wait([weak = weak_from_this()](const std::error_code& error) {
    const auto self = weak.lock();
    if (!error && self) self->judge();
  });
}

void RootServer::judge() {
  const auto describe = [this](const std::vector<int>& ranks) {
    return rendezvous_.describe_ranks(ranks);
  };
  const std::set<int> askers = std::exchange(askers_, {});
  if (const std::string mismatch = waiting_.mismatch(); !mismatch.empty())
    return spread({hcclInvalidUsage, mismatch});
  const std::string deadlock = waiting_.deadlock();
  if (deadlock != suspected_) {
    suspected_ = deadlock;
    suspected_until_ = Deadline::after(kCertainty);
  } else if (!deadlock.empty() && suspected_until_.expired()) {
    return spread({hcclInvalidUsage, deadlock});
  }
  for (const auto& session : sessions_) {
    if (!askers.contains(session->rank)) continue;
    const std::string found = waiting_.root_cause(session->rank, departed_, describe);
    session->send(FrameType::verdict, serialize(Failure{hcclSystemError, found}));
  }
}

}  // namespace hccl::bootstrap
