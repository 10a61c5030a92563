// SPDX-License-Identifier: Apache-2.0
// Runs the loop in the caller's thread. Every wait has a deadline.
#include "bootstrap/rendezvous_client.h"

#include "base/error.h"
#include "base/log.h"
#include "base/peer_process.h"
#include "base/process.h"
#include "base/text.h"
#include "bootstrap/missing_reports.h"
#include "bootstrap/socket_owner.h"
#include "crypto/tls_session.h"

#include <chrono>
#include <cmath>
#include <utility>

namespace hccl::bootstrap {
namespace {

constexpr std::chrono::seconds kVerdictPatience{1};
constexpr std::chrono::milliseconds kFlushPatience{100};
constexpr const char* kNoAnswer = "the connection was accepted but not answered";

}  // namespace

RendezvousClient::RendezvousClient(UniqueId id, JoinKey key, Hello hello, Deadline deadline)
    : id_(std::move(id)),
      key_(std::move(key)),
      hello_(std::move(hello)),
      deadline_(deadline),
      server_{id_, hello_.rank},
      search_(loop_, server_, deadline) {
  loop_.open();
}

void RendezvousClient::join(const std::function<std::string()>& before_attempt) {
  search_.run(before_attempt, [this](FileDescriptor socket, ServerSearch::Route route) {
    return route == ServerSearch::Route::tcp ? join_over(std::move(socket))
                                             : join_locally(std::move(socket));
  });
}

void RendezvousClient::note_missing(const Frame& frame) {
  const auto report = parse<Failure>(frame.payload);
  // The number of reports is limited, so that a faulty server cannot fill the log.
  if (!report || ++server_reports_ > MissingReports::kMost) server_.throw_protocol_error();
  log(LogLevel::warning, "bootstrap", report->text);
}

bool RendezvousClient::join_locally(FileDescriptor socket) {
  const auto connection =
      std::make_shared<FrameConnection>(loop_, FrameConnection::Detached{std::move(socket)},
                                        FrameConnection::Limits{.payload = kLargePayload});
  server_.is_known = true;
  hello_.secret_check = key_.check();
  search_.set_trouble(
      text(connection->peer_text(), " listens on the server's unix socket, but does not answer"));
  const auto answer = ask_to_join(*connection);
  if (!answer) return false;
  read_welcome(*answer);
  connection_ = connection;
  return true;
}

bool RendezvousClient::join_over(FileDescriptor socket) {
  using Knowledge = SocketOwner::Knowledge;
  const FrameConnection::Ends ends{local_address(socket.get()), remote_address(socket.get())};
  // If the kernel knows already that the server belongs to another user, that user gets no message
  // with which to test guesses of the secret.
  Knowledge knowledge = server_.check_user(socket.get());
  auto tls = std::make_shared<crypto::TlsSession>(crypto::TlsRole::client, key_.session_key());
  const auto connection = std::make_shared<FrameConnection>(
      loop_, FrameConnection::Detached{std::move(socket), ends, std::move(tls)},
      FrameConnection::Limits{.payload = kLargePayload});
  search_.set_trouble(kNoAnswer);
  const auto is_established = [&] {
    if (connection->receive()) server_.throw_protocol_error();  // an answer before the hello
    return connection->is_established();
  };
  if (!await(*connection, is_established)) return false;
  if (knowledge != Knowledge::known) knowledge = server_.check_user(connection->fd());
  server_.is_known = key_.is_secret() || knowledge == Knowledge::known;
  hello_.here = ends.own;
  hello_.there = ends.peer;
  hello_.secret_check = 0;
  const auto answer = ask_to_join(*connection);
  if (!answer) return false;
  if (knowledge == Knowledge::none && !server_.is_known) {
    search_.set_trouble("the server closed the connection before the kernel could report its user");
    return false;
  }
  read_welcome(*answer);
  connection_ = connection;
  return true;
}

std::optional<Frame> RendezvousClient::ask_to_join(FrameConnection& connection) {
  std::optional<Frame> answer;
  connection.send(FrameType::hello, serialize(hello_));
  const auto has_answer = [&] {
    if (!answer) answer = connection.receive();
    return answer.has_value();
  };
  return await(connection, has_answer) ? std::move(answer) : std::nullopt;
}

bool RendezvousClient::await(FrameConnection& connection, const std::function<bool()>& is_done) {
  while (!is_done()) {
    if (connection.broke_rules()) {
      if (!connection.is_local()) static_cast<void>(server_.check_user(connection.fd()));
      server_.throw_unknown_peer(connection);
    }
    if (connection.ended()) {
      search_.set_trouble(text("the server ", connection.why()));
      return false;
    }
    loop_.run_one(deadline_.within(MissingReports::kFirst));
    search_.check();
  }
  return true;
}

void RendezvousClient::read_welcome(const Frame& frame) {
  if (frame.type == FrameType::refusal) server_.throw_refusal(frame);
  if (frame.type == FrameType::failure) {
    if (const auto failure = parse<Failure>(frame.payload)) server_.throw_failure(*failure);
  }
  const auto welcome =
      frame.type == FrameType::welcome ? parse<Welcome>(frame.payload) : std::nullopt;
  if (!welcome) server_.throw_protocol_error();
  server_.process = welcome->server;
  server_.rank = welcome->server_rank;
  if (server_.process.shares_pids_with(hello_.process) &&
      server_.process.pid != hello_.process.pid) {
    server_process_ = open_process(server_.process.pid);
    // If the process cannot be watched, the end of the connection reveals its exit.
    server_exit_.emplace(loop_);
    if (server_process_.valid() && server_exit_->watch(server_process_.get()) == 0)
      server_exit_->when_readable([this] { server_has_exited_ = true; });
  }
}

Table RendezvousClient::wait_for_table() {
  const Frame frame = wait_for(FrameType::table);
  auto table = parse<Table>(frame.payload);
  if (!table || table->ranks.size() != static_cast<std::size_t>(hello_.size)) {
    throw Error(hcclSocketError,
                text("the server at ", server_.where(), " sent a malformed table of ",
                     "ranks; install the same version of hccl on all ranks"));
  }
  table->is_private = key_.is_secret();
  return *std::move(table);
}

std::vector<Bytes> RendezvousClient::finish(const Bytes& announced) {
  connection_->send(FrameType::ready, announced);
  auto all = parse<Announcements>(wait_for(FrameType::go).payload);
  if (!all || all->by_rank.size() != static_cast<std::size_t>(hello_.size))
    server_.throw_protocol_error();
  return std::move(all->by_rank);
}

LinkSocket RendezvousClient::release() {
  return {connection_->detach(), hello_.rank, server_.rank, server_.description(),
          server_.is_known};
}

void RendezvousClient::leave(const Failure& own) {
  if (!connection_ || connection_->ended()) return;
  connection_->send(FrameType::leaving, serialize(own));
  flush_last_words();
}

// Blocks until the queued frames have been sent, but for at most kFlushPatience. After leave(), no
// later call would send them.
void RendezvousClient::flush_last_words() {
  const Deadline patience = Deadline::after(kFlushPatience);
  while (connection_->has_unsent() && !patience.expired()) loop_.run_one(patience);
}

// Throws if next_frame() returns a frame: the server must not send one while the caller waits.
void RendezvousClient::wait(Deadline::Duration limit) {
  check_server();
  if (!kept_) run_once(limit);
  if (kept_) server_.throw_protocol_error();
}

void RendezvousClient::run_once(Deadline::Duration limit) {
  loop_.run_one(deadline_.within(limit));
  check_server();
  if (!kept_ && deadline_.expired()) give_up();
}

std::optional<Frame> RendezvousClient::next_frame() {
  while (true) {
    std::optional<Frame> frame = connection_->receive();
    if (!frame) return frame;
    if (frame->type == FrameType::failure) {
      const auto failure = parse<Failure>(frame->payload);
      if (failure) server_.throw_failure(*failure);
    }
    if (frame->type == FrameType::missing) {
      note_missing(*frame);
      continue;
    }
    if (frame->type != FrameType::server_rank) return frame;
    // Accepts this frame only once: otherwise a server could keep this loop busy past every
    // deadline.
    const auto rank = server_.rank < 0 ? parse<RankMessage>(frame->payload) : std::nullopt;
    if (!rank) server_.throw_protocol_error();
    server_.rank = rank->rank;
  }
}

// Reads frames before checking the server's process, which may have sent an error and then exited.
void RendezvousClient::check_server() {
  if (!kept_) kept_ = next_frame();
  if (server_has_exited_) await_last_words();
  if (kept_ || !(server_has_exited_ || connection_->ended())) return;
  if (connection_->forged())
    throw Error(hcclSocketError, text(server_.description(), ": ", forged_record_text()));
  throw Error(hcclSystemError,
              text(server_.description(), " exited during initialisation; see its own ",
                   "output, then start all ranks again"));
}

void RendezvousClient::await_last_words() {
  const Deadline patience = Deadline::after(kLastWords);
  while (!kept_ && !connection_->ended() && !patience.expired()) {
    loop_.run_one(patience);
    kept_ = next_frame();
  }
}

Frame RendezvousClient::wait_for(FrameType type) {
  check_server();
  while (!kept_) run_once(std::chrono::hours(24));
  Frame frame = *std::exchange(kept_, std::nullopt);
  if (frame.type != type) server_.throw_protocol_error();
  return frame;
}

void RendezvousClient::wait_for_verdict(const Failure& otherwise) {
  const Deadline patience = Deadline::after(kVerdictPatience);
  while (!patience.expired()) {
    kept_.reset();
    check_server();
    if (!kept_) loop_.run_one(patience);
  }
  throw Error(otherwise.code, otherwise.text);
}

void RendezvousClient::give_up() {
  connection_->send(
      FrameType::gave_up,
      serialize(GaveUp{static_cast<std::uint32_t>(std::lround(search_.elapsed_seconds()))}));
  flush_last_words();
  const bool stopped =
      server_.process.shares_pids_with(hello_.process) && is_stopped(server_.process.pid);
  wait_for_verdict(
      {hcclInternalError,
       stopped ? text(server_.description(), " has not answered for ", search_.elapsed_seconds(),
                      " s: it is stopped (SIGSTOP or a debugger); resume it")
               : text("rank ", hello_.rank, ": not all ranks had joined after ",
                      search_.elapsed_seconds(), " s, and the server at ", server_.where(), " (",
                      server_.description(),
                      ") does not report which are missing; check whether it is hung, or raise "
                      "HCCL_INIT_TIMEOUT")});
}

}  // namespace hccl::bootstrap
