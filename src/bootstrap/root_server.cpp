// SPDX-License-Identifier: Apache-2.0
// Passes the ranks' frames to the Rendezvous, and sends its decisions to the ranks.
#include "bootstrap/root_server.h"

#include "base/config.h"
#include "base/log.h"
#include "base/peer_process.h"
#include "base/text.h"
#include "bootstrap/root_socket.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <set>
#include <utility>

namespace hccl::bootstrap {
namespace {

// How long a server still answers late ranks after its rendezvous has finished. A fixed port is
// released sooner, because the next run needs it.
constexpr std::chrono::seconds kFixedPortLinger{2};
constexpr std::chrono::seconds kOwnPortLinger{60};

}  // namespace

RootServer::RootServer(UniqueId id, FileDescriptor listener, JoinKey key,
                       std::chrono::milliseconds hello_limit)
    : loop_(ControlThread::instance().loop()),
      id_(std::move(id)),
      self_(ProcessIdentity::mine()),
      ranks_(*this),
      admission_(loop_, id_, std::move(key), std::move(listener), listen_for_local_ranks(id_),
                 hello_limit, *this),
      faults_(loop_, ranks_, rendezvous_),
      stalls_(loop_, ranks_, rendezvous_, faults_),
      missing_reports_(config()->hang_report),
      report_(loop_),
      linger_(loop_) {}

void RootServer::start() {
  ControlThread::instance().start();
  ControlThread::instance().post([self = shared_from_this()] {
    if (self->closed_) return;
    self->alive_ = self;
    self->admission_.start();
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
    self->advance();
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

void RootServer::on_hello(RankAdmission::Pending& pending, const Hello& hello) {
  const FrameConnection& connection = *pending.connection;
  const auto failure = rendezvous_.admit(
      hello, connection.is_local() ? "unix socket" : connection.ends().peer.to_text());
  if (!failure) return admit(pending, hello);
  const bool concerns_all = rendezvous_.phase() == Rendezvous::Phase::failed && !ended_;
  RankAdmission::refuse(pending, *failure, !rendezvous_.is_over());
  if (rendezvous_.phase() == Rendezvous::Phase::failed) note_told(hello.rank);
  if (concerns_all) advance();
}

// Fails the rendezvous if memory runs out, because the rank cannot join a second time.
void RootServer::admit(RankAdmission::Pending& pending, const Hello& hello) {
  try {
    join(pending, hello);
  } catch (const std::bad_alloc&) {
    rendezvous_.rank_left(hello.rank,
                          {hcclSystemError,
                           "the host of the server that all ranks connect to has no memory "
                           "left; free memory on that host"});
    advance();
    throw;
  }
}

void RootServer::join(RankAdmission::Pending& pending, const Hello& hello) {
  const auto connection = RankAdmission::take(pending);
  const FrameConnection::Ends& ends = connection->ends();
  if (!connection->is_local() && (hello.here != ends.peer || hello.there != ends.own)) {
    log(LogLevel::info, "bootstrap", "rank ", hello.rank, " connected from ", hello.here.to_text(),
        " to ", hello.there.to_text(), " and arrived as ", ends.peer.to_text(), " at ",
        ends.own.to_text(), ": a device on the path translates addresses or relays connections");
  }
  told_.resize(static_cast<std::size_t>(rendezvous_.size()));
  if (admission_.is_taken_at_its_word(*connection) && !std::exchange(warned_unproven_, true)) {
    log(LogLevel::warning, "bootstrap", "accepted rank ", hello.rank, " from ", ends.peer.to_text(),
        " without authentication: the ranks share no secret; set HCCL_SECRET_FILE on every rank");
  }
  const bool is_own_process = hello.process.same_process(self_);
  if (is_own_process && own_rank_ < 0) {
    own_rank_ = hello.rank;
    // Comes before add(): only the earlier ranks need this frame, because the new rank receives the
    // same number in the welcome.
    ranks_.broadcast(FrameType::server_rank, serialize(RankMessage{own_rank_}));
  }
  ranks_.add(hello.rank, connection, is_own_process);
  connection->send(FrameType::welcome, serialize(Welcome{self_, own_rank_}));
  watch(hello.rank, hello.process);
  if (!std::exchange(report_armed_, true)) report_missing(std::chrono::milliseconds(0));
  advance();
  ranks_.start(hello.rank);
}

void RootServer::watch(int rank, const ProcessIdentity& process) {
  if (!process.shares_pids_with(self_) || process.pid == self_.pid) return;
  FileDescriptor pidfd = open_process(process.pid);
  if (!pidfd.valid()) {
    // ESRCH: the process has already exited. For any other errno, the end of the connection will
    // reveal the exit.
    if (errno == ESRCH) note_exit(rank);
    return;
  }
  watches_[rank] = ProcessWatch(std::move(pidfd), [weak = weak_from_this(), rank] {
    if (const auto self = weak.lock()) self->note_exit(rank);
  });
}

// Reports the exit after kLastWords, because an error that the rank sent before its exit may still
// arrive. The end of the connection fails the rendezvous sooner, unless a child process holds the
// connection open.
void RootServer::note_exit(int rank) {
  const auto timer = std::make_shared<LoopTimer>(loop_);
  timer->start(kLastWords, [weak = weak_from_this(), rank, timer] {
    const auto self = weak.lock();
    if (!self || self->rendezvous_.is_over()) return;
    self->rendezvous_.rank_exited(rank);
    self->advance();
  });
}

void RootServer::on_rank_frame(int rank, const Frame& frame) {
  if (relays()) return relay(rank, frame);
  if (rendezvous_.is_over()) return;
  if (frame.type == FrameType::ready && frame.payload.size() <= kMostAnnounced) {
    rendezvous_.set_ready(rank, frame.payload);
  } else if (frame.type == FrameType::gave_up) {
    const auto gave_up = parse<GaveUp>(frame.payload);
    rendezvous_.rank_gave_up(rank, gave_up ? gave_up->seconds : 0);
  } else if (frame.type == FrameType::leaving) {
    const auto own = parse<Failure>(frame.payload);
    rendezvous_.rank_left(
        rank, own ? as_believed(rank, *own)
                  : Failure{hcclInternalError, "the rank gave no reason; see its own output"});
  } else {
    rendezvous_.rank_left(
        rank, {hcclInternalError,
               "the rank broke the protocol; install the same version of hccl on all ranks"});
  }
  advance();
}

void RootServer::relay(int rank, const Frame& frame) {
  if (frame.type == FrameType::departed) return faults_.rank_departed(rank);
  if (frame.type == FrameType::stuck || frame.type == FrameType::waiting) {
    auto waiting = parse<Waiting>(frame.payload);
    const auto exists = [this](int one) { return rendezvous_.has_joined(one); };
    if (!waiting || !std::ranges::all_of(waiting->awaited, exists)) return;
    if (frame.type == FrameType::stuck) return stalls_.on_stuck(rank, std::move(*waiting));
    return stalls_.on_answer(rank, std::move(*waiting));
  }
  const auto fault = frame.type == FrameType::fault ? parse<Failure>(frame.payload) : std::nullopt;
  if (fault) faults_.spread(as_believed(rank, *fault));
}

void RootServer::on_rank_connection_ended(int rank, FrameConnection& connection) {
  const bool forged = connection.forged();
  if (!rendezvous_.is_over()) {
    if (forged) {
      rendezvous_.rank_left(rank, {hcclSocketError, forged_record_text()});
    } else {
      rendezvous_.rank_exited(rank);
    }
    advance();
  }
  const std::string why =
      text(forged ? kForgedRecord : connection.why(), ", ", connection.ends_text());
  ranks_.finish(rank);
  if (!relays()) return;
  if (ranks_.empty()) return close();
  faults_.connection_ended(rank, why);
}

// Quotes the failure text of a rank whose identity is unverified.
Failure RootServer::as_believed(int rank, Failure failure) const {
  if (admission_.is_taken_at_its_word(ranks_.of(rank))) failure.text = quoted(failure.text);
  return failure;
}

bool RootServer::relays() const {
  return rendezvous_.phase() == Rendezvous::Phase::complete &&
         (rendezvous_.several_nodes() || rendezvous_.all_announced());
}

void RootServer::advance() {
  rendezvous_.advance();
  if (rendezvous_.phase() == Rendezvous::Phase::exchanging && !std::exchange(table_sent_, true)) {
    ranks_.broadcast(FrameType::table, serialize(rendezvous_.table()));
  }
  if (rendezvous_.is_over() && !std::exchange(ended_, true)) end();
}

void RootServer::end() {
  watches_.clear();
  report_.cancel();
  if (rendezvous_.phase() == Rendezvous::Phase::complete) {
    ranks_.broadcast(FrameType::go, serialize(Announcements{rendezvous_.announced()}));
    if (relays()) ranks_.keep_alive();
  } else {
    ranks_.broadcast(FrameType::failure, serialize(rendezvous_.failure()), true);
    told_.resize(static_cast<std::size_t>(rendezvous_.size()));
    for (int rank = 0; rank < rendezvous_.size(); ++rank) {
      if (rendezvous_.has_joined(rank)) note_told(rank);
    }
  }
  if (retired_) return retire_now();
  const bool own_port = id_.kind == UniqueId::Kind::with_secret;
  linger_.start(own_port ? kOwnPortLinger : kFixedPortLinger, [this] { retire_now(); });
}

// Stops admitting ranks. Closes the server unless it must still relay messages between ranks.
void RootServer::retire_now() {
  if (!relays() || ranks_.empty()) return close();
  admission_.close_listeners();
}

// Schedules the next report of missing ranks. The report does not end the rendezvous. `waited`: the
// time since the first rank joined.
void RootServer::report_missing(std::chrono::milliseconds waited) {
  const auto due = missing_reports_.next();
  if (!due) return;
  report_.start(*due - waited, [this, due = *due] {
    if (rendezvous_.is_over()) return;
    missing_reports_.note_made();
    send_report(due);
    report_missing(due);
  });
}

// Logs the report in this process, and sends it to one rank on each other node, which logs it too.
void RootServer::send_report(std::chrono::milliseconds waited) {
  const std::string report =
      text("after ", std::chrono::duration<double>(waited).count(), " s of initialisation, ",
           rendezvous_.waited_for(), " (the communicator has ", rendezvous_.size(),
           " ranks); still waiting: check whether every rank is running");
  log(LogLevel::warning, "bootstrap", report);
  std::set<std::string> told{self_.node};
  for (const int rank : ranks_.ranks()) {
    if (!told.insert(rendezvous_.node_of(rank)).second) continue;
    ranks_.send(rank, FrameType::missing, serialize(Failure{hcclSystemError, report}));
  }
}

void RootServer::close() {
  if (std::exchange(closed_, true)) return;
  // The release is deferred, because callers further up the stack still use this object.
  if (alive_ != nullptr) {
    ControlThread::instance().post(releasing_, shared_from_this(), [](void* self) {
      static_cast<RootServer*>(self)->alive_.reset();
    });
  }
  admission_.close_all();
  // Cancel all timers here, because the destructor may run in another thread.
  linger_.cancel();
  report_.cancel();
  faults_.stop();
  stalls_.stop();
  watches_.clear();
  ranks_.finish_all();
  waiting_for_told_.clear();
}

void RootServer::note_told(int rank) {
  if (rank >= 0 && rank < rendezvous_.size()) told_[static_cast<std::size_t>(rank)] = true;
  if (!all_told()) return;
  for (std::promise<void>& promise : std::exchange(waiting_for_told_, {})) promise.set_value();
}

bool RootServer::all_told() const {
  if (rendezvous_.phase() == Rendezvous::Phase::complete) return true;
  // The rendezvous has not failed so far. If a rank of this process has joined, its report of a
  // failure may still be on the way.
  if (rendezvous_.phase() != Rendezvous::Phase::failed) return own_rank_ < 0;
  return std::ranges::all_of(told_, [](bool told) { return told; });
}

}  // namespace hccl::bootstrap
