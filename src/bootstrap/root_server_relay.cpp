// SPDX-License-Identifier: Apache-2.0
// The star by which ranks of several nodes hear of each other until they leave: the first fault
// goes to all, and a connection that ends without a word is a fault of its own.
#include "base/log.h"
#include "base/peer_process.h"
#include "base/text.h"
#include "bootstrap/control_thread.h"
#include "bootstrap/root_server.h"

#include <algorithm>

#include <asio/steady_timer.hpp>

namespace hccl::bootstrap {

bool RootServer::relays() const {
  return rendezvous_.phase() == Rendezvous::Phase::complete &&
         (rendezvous_.several_nodes() || rendezvous_.all_announced());
}

void RootServer::relay(Session& session, const Frame& frame) {
  if (frame.type == FrameType::departed) {
    session.departed = true;
    departed_.insert(session.rank);
    broadcast(FrameType::departed, serialize(RankMessage{session.rank}));
    return;
  }
  if (frame.type == FrameType::stuck || frame.type == FrameType::waiting) {
    auto waiting = parse<Waiting>(frame.payload);
    const auto exists = [this](int rank) { return rank < rendezvous_.size(); };
    if (!waiting || !std::ranges::all_of(waiting->awaited, exists)) return;
    if (frame.type == FrameType::stuck) return on_stuck(session, std::move(*waiting));
    return on_answer(session, std::move(*waiting));
  }
  const auto fault = frame.type == FrameType::fault ? parse<Failure>(frame.payload) : std::nullopt;
  if (fault) spread(as_believed(session, *fault));
}

void RootServer::on_rank_left(const Session& session, const std::string& why) {
  const bool anybody = std::ranges::any_of(sessions_, [](const auto& s) { return s->rank >= 0; });
  if (!anybody) return close();
  if (session.departed || fault_spread_) return;
  lost_.push_back(session.rank);
  why_lost_ = text(why, ", ", session.ends());
  if (lost_.size() > 1) return;
  // The ranks of its node may know more, and a whole node is lost rank by rank.
  const auto timer = std::make_shared<asio::steady_timer>(ControlThread::instance().context());
  timer->expires_after(kLastWords);
  timer->async_wait([weak = weak_from_this(), timer](const std::error_code& error) {
    const auto self = weak.lock();
    if (!error && self) self->report_lost();
  });
}

void RootServer::report_lost() {
  std::ranges::sort(lost_);
  spread({hcclSystemError,
          text(rendezvous_.describe_ranks(lost_), lost_.size() == 1 ? " is gone" : " are gone",
               " or out of reach (", why_lost_,
               "); see their own output, and whether the network between the nodes is up")});
}

void RootServer::spread(const Failure& failure) {
  if (std::exchange(fault_spread_, true)) return;
  broadcast(FrameType::fault, serialize(failure));
}

}  // namespace hccl::bootstrap
