// SPDX-License-Identifier: Apache-2.0
// Carries what joined ranks say to Rendezvous, and its decisions to the ranks.
#include "base/config.h"
#include "base/log.h"
#include "base/peer_process.h"
#include "base/text.h"
#include "bootstrap/control_thread.h"
#include "bootstrap/root_server_io.h"

#include <algorithm>
#include <cerrno>
#include <set>
#include <string>

namespace hccl::bootstrap {
namespace {

// Late ranks get a clear answer for a while; a port that the next run needs is given back sooner.
constexpr std::chrono::seconds kFixedPortLinger{2};
constexpr std::chrono::seconds kOwnPortLinger{60};

}  // namespace

RootServer::RootServer(UniqueId id, FileDescriptor listener, Bytes key,
                       std::chrono::milliseconds hello_limit)
    : id_(std::move(id)),
      key_(std::move(key)),
      hello_limit_(hello_limit),
      self_(ProcessIdentity::mine()),
      missing_reports_(config()->hang_report),
      acceptor_(std::make_shared<Acceptor>(std::move(listener))),
      io_(std::make_unique<Io>(ControlThread::instance().context())) {}

RootServer::~RootServer() = default;

void RootServer::start() {
  ControlThread::instance().start();
  ControlThread::instance().post([self = shared_from_this()] {
    if (self->closed_) return;
    self->alive_ = self;
    const std::weak_ptr<RootServer> weak = self;
    self->acceptor_->start(
        [weak](FileDescriptor socket, const Address& peer) {
          if (const auto server = weak.lock()) server->take_connection(std::move(socket), peer);
        },
        [weak] {
          const auto server = weak.lock();
          return server && server->make_room();
        });
  });
}

void RootServer::stop() {
  ControlThread::instance().post([self = shared_from_this()] { self->close(); });
}

void RootServer::retire() {
  ControlThread::instance().post([self = shared_from_this()] {
    self->retired_ = true;
    if (self->rendezvous_.is_over() || self->rendezvous_.size() == 0) self->retire_now();
  });
}

void RootServer::abandon(const Failure& failure) {
  ControlThread::instance().post([self = shared_from_this(), failure] {
    if (self->rendezvous_.size() == 0) return self->close();
    self->rendezvous_.fail(failure);
    self->settle();
  });
}

void RootServer::wait_until_all_know(std::chrono::milliseconds patience) {
  std::promise<void> promise;
  const std::future<void> told = promise.get_future();
  ControlThread::instance().post(
      [self = shared_from_this(),
       shared = std::make_shared<std::promise<void>>(std::move(promise))] {
        self->waiting_for_told_.push_back(std::move(*shared));
        self->note_told(-1);
      });
  told.wait_for(patience);
}

void RootServer::on_frame(Session& session, const Frame& frame) {
  if (session.rank >= 0) return on_joined_frame(session, frame);
  session.greeted ? on_hello(session, frame) : on_opening(session, frame);
}

void RootServer::on_closed(Session& session, const std::string& why) {
  const int rank = session.rank;
  if (rank < 0) reject(session, why);
  forget(session);
  if (rank >= 0 && relays()) return on_rank_left(session, why);
  if (rank < 0 || rendezvous_.is_over()) return;
  rendezvous_.rank_exited(rank);
  settle();
}

void RootServer::on_forged(Session& session) {
  const int rank = session.rank;
  if (rank < 0) return refuse(session, Refusal::other_key, "does not know the secret");
  if (!rendezvous_.is_over()) {
    rendezvous_.rank_left(rank, {hcclSocketError, kForgedFrame});
    settle();  // the rank hears of it as well
  }
  session.finish();
  forget(session);
  if (relays()) on_rank_left(session, kForgedFrame);
}

void RootServer::seat(Session& session, const Hello& hello) {
  session.lift_deadline();
  told_.resize(static_cast<std::size_t>(rendezvous_.size()));
  if (key_.empty() && !session.is_local() && !std::exchange(warned_unproven_, true)) {
    log(LogLevel::warning, "bootstrap", "took rank ", hello.rank, " from ",
        session.peer().to_text(),
        " at its word: HCCL_COMM_ID carries no secret; set HCCL_SECRET on every rank");
  }
  const bool own_rank_is_new = own_rank_ < 0 && hello.process.same_process(self_);
  if (own_rank_is_new) {
    own_rank_ = hello.rank;
    broadcast(FrameType::server_rank, serialize(RankMessage{own_rank_}));
  }
  session.rank = hello.rank;
  session.is_own_process = hello.process.same_process(self_);
  session.send(FrameType::welcome, serialize(Welcome{self_, own_rank_}));
  watch(hello.rank, hello.process);
  if (!std::exchange(report_armed_, true)) report_missing(std::chrono::milliseconds(0));
  settle();
}

void RootServer::watch(int rank, const ProcessIdentity& process) {
  if (!process.shares_pids_with(self_) || process.pid == self_.pid) return;
  FileDescriptor pidfd = open_process(process.pid);
  if (!pidfd.valid()) {
    // Gone already; any other reason leaves the connection's end to tell of its death.
    if (errno == ESRCH) note_exit(rank);
    return;
  }
  watches_[rank] = ProcessWatch(std::move(pidfd), [weak = weak_from_this(), rank] {
    if (const auto self = weak.lock()) self->note_exit(rank);
  });
}

// Why it went may still be on its way: the end of its connection comes after that and settles the
// matter, unless a child of the rank holds the connection open.
void RootServer::note_exit(int rank) {
  const auto timer = std::make_shared<asio::steady_timer>(ControlThread::instance().context());
  timer->expires_after(kLastWords);
  timer->async_wait([weak = weak_from_this(), rank, timer](const std::error_code& error) {
    const auto self = weak.lock();
    if (error || !self || self->rendezvous_.is_over()) return;
    self->rendezvous_.rank_exited(rank);
    self->settle();
  });
}

void RootServer::on_joined_frame(Session& session, const Frame& frame) {
  if (relays()) return relay(session, frame);
  if (rendezvous_.is_over()) return;
  if (frame.type == FrameType::ready && frame.payload.size() <= kMostAnnounced) {
    rendezvous_.set_ready(session.rank, frame.payload);
  } else if (frame.type == FrameType::gave_up) {
    const auto gave_up = parse<GaveUp>(frame.payload);
    rendezvous_.rank_gave_up(session.rank, gave_up ? gave_up->seconds : 0);
  } else if (frame.type == FrameType::leaving) {
    const auto own = parse<Failure>(frame.payload);
    rendezvous_.rank_left(session.rank, own ? as_believed(session, *own)
                                            : Failure{hcclInternalError, "it does not say why"});
  } else {
    rendezvous_.rank_left(session.rank, {hcclInternalError, "it broke the protocol"});
  }
  settle();
}

void RootServer::settle() {
  rendezvous_.advance();
  if (rendezvous_.phase() == Rendezvous::Phase::exchanging && !std::exchange(table_sent_, true)) {
    broadcast(FrameType::table, serialize(rendezvous_.table()));
  }
  if (rendezvous_.is_over() && !std::exchange(ended_, true)) end();
}

void RootServer::end() {
  watches_.clear();
  io_->report.cancel();
  if (rendezvous_.phase() == Rendezvous::Phase::complete) {
    broadcast(FrameType::go, serialize(Announcements{rendezvous_.announced()}));
    if (relays()) std::ranges::for_each(sessions_, [](const auto& one) { one->keep_alive(); });
  } else {
    broadcast(FrameType::failure, serialize(rendezvous_.failure()));
    told_.resize(static_cast<std::size_t>(rendezvous_.size()));
    for (int rank = 0; rank < rendezvous_.size(); ++rank) {
      if (rendezvous_.has_joined(rank)) note_told(rank);
    }
  }
  if (retired_) return retire_now();
  const bool own_port = id_.kind == UniqueId::Kind::with_secret;
  io_->linger.expires_after(own_port ? kOwnPortLinger : kFixedPortLinger);
  io_->linger.async_wait([self = shared_from_this()](const std::error_code& error) {
    if (!error) self->retire_now();
  });
}

// Nobody is let in any more; those who still hear of each other here go on.
void RootServer::retire_now() {
  if (!relays() || sessions_.empty()) return close();
  acceptor_->close();
}

// While ranks wait for others: says who is missing, and fails nothing.
void RootServer::report_missing(std::chrono::milliseconds waited) {
  const auto due = missing_reports_.next();
  if (!due) return;
  io_->report.expires_after(*due - waited);
  io_->report.async_wait([self = shared_from_this(), due = *due](const std::error_code& error) {
    if (error || self->rendezvous_.is_over()) return;
    self->missing_reports_.note_made();
    self->tell_missing(due);
    self->report_missing(due);
  });
}

// In the log of this process, and of one rank of each other node.
void RootServer::tell_missing(std::chrono::milliseconds waited) {
  const std::string report =
      text("after ", std::chrono::duration<double>(waited).count(), " s of initialisation ",
           rendezvous_.waited_for(), " (of ", rendezvous_.size(),
           "); still waiting: see whether they were started");
  log(LogLevel::warning, "bootstrap", report);
  std::set<std::string> told{self_.box};
  for (const SessionPointer& session : std::vector<SessionPointer>(sessions_)) {
    if (session->rank < 0 || !told.insert(rendezvous_.box_of(session->rank)).second) continue;
    session->send(FrameType::missing, serialize(Failure{hcclSystemError, report}));
  }
}

void RootServer::close() {
  if (std::exchange(closed_, true)) return;
  // Not at once: callers further up still use this object.
  if (alive_ != nullptr) {
    ControlThread::instance().post(releasing_, shared_from_this(), [](void* self) {
      static_cast<RootServer*>(self)->alive_.reset();
    });
  }
  acceptor_->close();
  rejections_.report_omitted();
  io_->linger.cancel();
  io_->report.cancel();
  io_->judgement.cancel();
  watches_.clear();
  for (const SessionPointer& session : std::exchange(sessions_, {})) session->finish();
  waiting_for_told_.clear();
}

void RootServer::broadcast(FrameType type, const Bytes& payload) {
  const Digest digest = sha256(payload);
  // The ranks of this process last: they may end it as soon as they know.
  for (const bool own : {false, true}) {
    for (const SessionPointer& session : std::vector<SessionPointer>(sessions_)) {
      if (session->rank >= 0 && session->is_own_process == own)
        session->send(type, payload, digest);
    }
  }
}

void RootServer::note_told(int rank) {
  if (rank >= 0 && rank < rendezvous_.size()) told_[static_cast<std::size_t>(rank)] = true;
  if (!all_told()) return;
  for (std::promise<void>& promise : std::exchange(waiting_for_told_, {})) promise.set_value();
}

bool RootServer::all_told() const {
  if (rendezvous_.phase() != Rendezvous::Phase::failed) return true;
  return std::ranges::all_of(told_, [](bool told) { return told; });
}

}  // namespace hccl::bootstrap
