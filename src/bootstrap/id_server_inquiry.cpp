// SPDX-License-Identifier: Apache-2.0
// A rank that has waited for long knows only whom it waits for itself, and that one may wait too.
// The server asks all, and names those at the end of the chain.
#include "base/text.h"
#include "bootstrap/control_thread.h"
#include "bootstrap/id_server.h"

#include <chrono>

#include <asio/steady_timer.hpp>

namespace hccl::bootstrap {
namespace {

// Every rank that runs answers at once.
constexpr std::chrono::milliseconds kForAnswers{400};

}  // namespace

void IdServer::on_stuck(const Session& session, Waiting waiting) {
  const bool begins = askers_.empty();
  if (begins) waiting_ = {};
  waiting_.add(session.rank, std::move(waiting));
  askers_.insert(session.rank);
  if (!begins) return;
  broadcast(FrameType::inquiry, {});
  const auto timer = std::make_shared<asio::steady_timer>(ControlThread::instance().context());
  timer->expires_after(kForAnswers);
  timer->async_wait([weak = weak_from_this(), timer](const std::error_code& error) {
    const auto self = weak.lock();
    if (!error && self) self->judge();
  });
}

void IdServer::judge() {
  const auto describe = [this](const std::vector<int>& ranks) {
    return rendezvous_.describe_ranks(ranks);
  };
  const std::set<int> askers = std::exchange(askers_, {});
  if (const std::string mismatch = waiting_.mismatch(); !mismatch.empty())
    return spread({hcclInvalidUsage, mismatch});
  for (const auto& session : sessions_) {
    if (!askers.contains(session->rank)) continue;
    const std::string found = waiting_.culprits(session->rank, departed_, describe);
    session->send(FrameType::verdict, serialize(Failure{hcclSystemError, found}));
  }
}

}  // namespace hccl::bootstrap
