// SPDX-License-Identifier: Apache-2.0
// Accepts, judges hellos by the rules of Rendezvous, and carries its decisions to the ranks.
#include "bootstrap/id_server.h"

#include "base/config.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "bootstrap/control_thread.h"
#include "bootstrap/peer_process.h"
#include "bootstrap/secret.h"
#include "bootstrap/stranger_log.h"

#include <algorithm>
#include <cerrno>

#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <sys/socket.h>

namespace hccl::bootstrap {
namespace {

constexpr std::chrono::seconds kHelloLimit{5};
constexpr std::size_t kMostPending = 128;  // connections that have not said who they are
constexpr int kBacklog = 4096;
constexpr std::chrono::milliseconds kNoDescriptorsPause{100};
// A port that is not ours alone is given back soon, but late ranks still get a clear answer.
constexpr std::chrono::seconds kFixedPortLinger{2};

Failure wrong_proof(const UniqueId& id) {
  if (id.kind == UniqueId::Kind::fixed_address) {
    return {hcclInvalidArgument,
            "the server of HCCL_COMM_ID expects another HCCL_SECRET; set the "
            "same HCCL_SECRET on every rank"};
  }
  return {hcclInvalidArgument,
          "the unique id belongs to another server than the one that now has "
          "its port; pass an id of this run"};
}

}  // namespace

struct IdServer::Io {
  explicit Io(asio::io_context& context)
      : acceptor(context), pause(context), linger(context), report(context) {}

  asio::ip::tcp::acceptor acceptor;
  asio::steady_timer pause;
  asio::steady_timer linger;
  asio::steady_timer report;
  StrangerLog strangers;
};

FileDescriptor listen_on(const Address& address) noexcept {
  const int family = address.v6 ? AF_INET6 : AF_INET;
  FileDescriptor socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return socket;
  const int on = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const SocketAddress where = to_socket_address(address);
  if (bind(socket.get(), where.get(), where.length) == 0 && listen(socket.get(), kBacklog) == 0) {
    return socket;
  }
  const int why = errno;
  socket.reset();
  errno = why;
  return socket;
}

IdServer::IdServer(UniqueId id, FileDescriptor listener, Bytes key)
    : id_(std::move(id)),
      key_(std::move(key)),
      v6_(local_address(listener.get()).v6),
      self_(ProcessIdentity::mine()),
      io_(std::make_unique<Io>(ControlThread::instance().context())) {
  std::error_code error;
  io_->acceptor.assign(v6_ ? asio::ip::tcp::v6() : asio::ip::tcp::v4(), listener.get(), error);
  if (error) {
    throw Error(hcclSystemError,
                text("cannot watch the listening socket: ", error.message(), "; raise ulimit -n"));
  }
  const int fd = listener.release();
  close_in_forked_children(fd);
}

IdServer::~IdServer() = default;

void IdServer::start() {
  ControlThread::instance().start();
  ControlThread::instance().post([self = shared_from_this()] { self->wait_for_connection(); });
}

void IdServer::stop() {
  ControlThread::instance().post([self = shared_from_this()] { self->close(); });
}

void IdServer::retire() {
  ControlThread::instance().post([self = shared_from_this()] {
    self->retired_ = true;
    if (self->rendezvous_.is_over() || self->rendezvous_.size() == 0) self->close();
  });
}

void IdServer::wait_until_all_know(std::chrono::milliseconds patience) {
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

void IdServer::wait_for_connection() {
  if (closed_ || !io_->acceptor.is_open()) return;
  io_->acceptor.async_wait(asio::ip::tcp::acceptor::wait_read,
                           [self = shared_from_this()](const std::error_code& error) {
                             if (!error) self->accept_connections();
                           });
}

void IdServer::accept_connections() {
  while (io_->acceptor.is_open()) {
    // accept4 rather than Asio's accept, which leaves a moment without close-on-exec.
    FileDescriptor socket(
        accept4(io_->acceptor.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.valid()) {
      add_session(std::move(socket));
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN) return wait_for_connection();
    log(LogLevel::error, "bootstrap", "cannot accept a connection: ", system_error_text(errno),
        "; raise ulimit -n");
    make_room();
    io_->pause.expires_after(kNoDescriptorsPause);
    io_->pause.async_wait([self = shared_from_this()](const std::error_code& error) {
      if (!error) self->accept_connections();
    });
    return;
  }
}

void IdServer::add_session(FileDescriptor socket) {
  const auto pending = std::ranges::count_if(sessions_, [](const auto& s) { return s->rank < 0; });
  if (static_cast<std::size_t>(pending) >= kMostPending) make_room();
  const auto session = std::make_shared<Session>(std::move(socket), v6_, *this);
  sessions_.push_back(session);
  session->nonce = random_secret();
  session->set_deadline(kHelloLimit);
  session->start();
  Greeting greeting;
  greeting.nonce = session->nonce;
  session->send(FrameType::greeting, serialize(greeting));
}

// Ranks say hello at once, so the connection that has been silent longest is a stranger's.
void IdServer::make_room() {
  const auto oldest = std::ranges::find_if(sessions_, [](const auto& s) { return s->rank < 0; });
  if (oldest == sessions_.end()) return;
  const SessionPointer session = *oldest;
  session->close();
  reject(*session, "was silent while too many others wait");
  forget(*session);
}

void IdServer::on_frame(Session& session, const Frame& frame) {
  if (session.rank < 0) {
    on_hello(session, frame);
  } else {
    on_joined_frame(session, frame);
  }
}

void IdServer::on_closed(Session& session, const std::string& why) {
  const int rank = session.rank;
  if (rank < 0) reject(session, why);
  forget(session);
  if (rank < 0 || rendezvous_.is_over()) return;
  rendezvous_.rank_exited(rank);
  settle();
}

void IdServer::on_hello(Session& session, const Frame& frame) {
  const auto hello =
      frame.type == FrameType::hello ? parse_hello(frame.payload) : std::optional<Hello>();
  if (!hello) {
    session.close();
    reject(session, "sent a malformed hello");
    return forget(session);
  }
  if (!hello_proves(frame.payload, key_, session.nonce)) {
    reject(session, "does not know the secret");
    return refuse(session, wrong_proof(id_));
  }
  if (const auto failure = rendezvous_.admit(*hello, session.remote)) {
    const bool concerns_all = rendezvous_.phase() == Rendezvous::Phase::failed && !ended_;
    if (!rendezvous_.is_over()) reject(session, text("was refused: ", failure->text));
    refuse(session, *failure);
    if (rendezvous_.phase() == Rendezvous::Phase::failed) note_told(hello->rank);
    if (concerns_all) settle();
    return;
  }
  seat(session, *hello);
}

void IdServer::refuse(Session& session, const Failure& failure) {
  session.send(FrameType::refusal, serialize(failure));
  session.finish();
  forget(session);
}

void IdServer::seat(Session& session, const Hello& hello) {
  session.lift_deadline();
  told_.resize(static_cast<std::size_t>(rendezvous_.size()));
  if (key_.empty() && !session.is_local && !std::exchange(warned_unproven_, true)) {
    log(LogLevel::warning, "bootstrap", "took rank ", hello.rank, " from ", session.remote,
        " at its word: HCCL_COMM_ID carries no secret; set HCCL_SECRET on every rank");
  }
  const bool own_rank_is_new = own_rank_ < 0 && hello.process.same_process(self_);
  if (own_rank_is_new) {
    own_rank_ = hello.rank;
    broadcast(FrameType::server_rank, serialize_rank(own_rank_));
  }
  session.rank = hello.rank;
  session.send(FrameType::welcome, serialize(Welcome{self_, own_rank_}, key_, hello.nonce));
  watch(hello.rank, hello.process);
  if (!std::exchange(report_armed_, true)) report_missing();
  settle();
}

void IdServer::watch(int rank, const ProcessIdentity& process) {
  if (!process.shares_pids_with(self_) || process.pid == self_.pid) return;
  const FileDescriptor pidfd = open_process(process.pid);
  if (!pidfd.valid()) {
    // Gone already; any other reason leaves the connection's end to tell of its death.
    if (errno == ESRCH) rendezvous_.rank_exited(rank);
    return;
  }
  watches_[rank] = ProcessWatch(pidfd, [weak = weak_from_this(), rank] {
    const auto self = weak.lock();
    if (!self || self->rendezvous_.is_over()) return;
    self->rendezvous_.rank_exited(rank);
    self->settle();
  });
}

void IdServer::on_joined_frame(Session& session, const Frame& frame) {
  if (rendezvous_.is_over()) return;
  if (frame.type == FrameType::ready) {
    rendezvous_.set_ready(session.rank);
  } else if (frame.type == FrameType::gave_up) {
    const auto gave_up = parse_gave_up(frame.payload);
    rendezvous_.rank_gave_up(session.rank, gave_up ? gave_up->seconds : 0);
  } else if (frame.type == FrameType::leaving) {
    const auto own = parse_failure(frame.payload);
    rendezvous_.rank_left(session.rank,
                          own.value_or(Failure{hcclInternalError, "it does not say why"}));
  } else {
    rendezvous_.rank_left(session.rank, {hcclInternalError, "it broke the protocol"});
  }
  settle();
}

void IdServer::settle() {
  rendezvous_.advance();
  if (rendezvous_.phase() == Rendezvous::Phase::exchanging && !std::exchange(table_sent_, true)) {
    broadcast(FrameType::table, serialize(rendezvous_.table()));
  }
  if (rendezvous_.is_over() && !std::exchange(ended_, true)) end();
}

void IdServer::end() {
  watches_.clear();
  io_->report.cancel();
  if (rendezvous_.phase() == Rendezvous::Phase::complete) {
    broadcast(FrameType::go, {});
  } else {
    broadcast(FrameType::failure, serialize(rendezvous_.failure()));
    told_.resize(static_cast<std::size_t>(rendezvous_.size()));
    for (int rank = 0; rank < rendezvous_.size(); ++rank) {
      if (rendezvous_.has_joined(rank)) note_told(rank);
    }
  }
  if (retired_) return close();
  if (id_.kind == UniqueId::Kind::with_secret) return;
  io_->linger.expires_after(kFixedPortLinger);
  io_->linger.async_wait([self = shared_from_this()](const std::error_code& error) {
    if (!error) self->close();
  });
}

// Once, when ranks have been waiting for a while: says who is missing, and fails nothing.
void IdServer::report_missing() {
  const auto after = config()->hang_report;
  if (after.count() <= 0) return;
  io_->report.expires_after(after);
  io_->report.async_wait([self = shared_from_this(), after](const std::error_code& error) {
    if (error || self->rendezvous_.is_over()) return;
    log(LogLevel::warning, "bootstrap", "after ", std::chrono::duration<double>(after).count(),
        " s of initialisation ", self->rendezvous_.waited_for(), " (of ", self->rendezvous_.size(),
        "); still waiting: see whether they were started");
  });
}

void IdServer::close() {
  if (std::exchange(closed_, true)) return;
  if (io_->acceptor.is_open()) {
    forget_in_forked_children(io_->acceptor.native_handle());
    std::error_code ignored;
    io_->acceptor.close(ignored);
  }
  io_->pause.cancel();
  io_->linger.cancel();
  io_->report.cancel();
  watches_.clear();
  for (const SessionPointer& session : std::exchange(sessions_, {})) session->finish();
  waiting_for_told_.clear();
}

void IdServer::broadcast(FrameType type, const Bytes& payload) {
  for (const SessionPointer& session : std::vector<SessionPointer>(sessions_)) {
    if (session->rank >= 0) session->send(type, payload);
  }
}

void IdServer::reject(const Session& session, const std::string& why) {
  io_->strangers.report(session.remote, why);
}

void IdServer::forget(const Session& session) {
  std::erase_if(sessions_, [&](const SessionPointer& other) { return other.get() == &session; });
}

void IdServer::note_told(int rank) {
  if (rank >= 0 && rank < rendezvous_.size()) told_[static_cast<std::size_t>(rank)] = true;
  if (!all_told()) return;
  for (std::promise<void>& promise : std::exchange(waiting_for_told_, {})) promise.set_value();
}

bool IdServer::all_told() const {
  if (rendezvous_.phase() != Rendezvous::Phase::failed) return true;
  return std::ranges::all_of(told_, [](bool told) { return told; });
}

}  // namespace hccl::bootstrap
