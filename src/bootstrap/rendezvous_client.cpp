// SPDX-License-Identifier: Apache-2.0
// The caller's thread runs the loop, in which every wait has a deadline.
#include "bootstrap/rendezvous_client.h"

#include "base/config.h"
#include "base/errno_advice.h"
#include "base/error.h"
#include "base/log.h"
#include "base/peer_process.h"
#include "base/process.h"
#include "base/text.h"
#include "bootstrap/socket_owner.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <thread>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hccl::bootstrap {
namespace {

constexpr std::chrono::milliseconds kFirstPause{2};
constexpr std::chrono::milliseconds kLongestPause{50};
constexpr std::chrono::seconds kConnectLimit{5};
// The server of an id with a secret starts before the id exists, so it has ended if nobody listens.
constexpr std::chrono::milliseconds kRefusalPatience{500};
constexpr std::chrono::seconds kVerdictPatience{1};
constexpr std::chrono::milliseconds kFlushPatience{100};

FileDescriptor tcp_socket(bool v6) {
  FileDescriptor result(
      socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!result.valid()) {
    throw Error(
        hcclSystemError,
        text("cannot make a socket: ", system_error_text(errno), "; ",
             advice_on(errno, "see HCCL_COMM_ID, whose address family this host may lack")));
  }
  const int on = 1;
  // Lets the server bind a port number that this outgoing connection holds.
  setsockopt(result.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  setsockopt(result.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return result;
}

}  // namespace

RendezvousClient::RendezvousClient(UniqueId id, Bytes key, Hello hello, Deadline deadline)
    : id_(std::move(id)),
      key_(std::move(key)),
      hello_(std::move(hello)),
      deadline_(deadline),
      reports_(config()->hang_report) {
  loop_.open();
}

void RendezvousClient::join(const std::function<std::string()>& before_attempt) {
  std::chrono::milliseconds pause = kFirstPause;
  while (true) {
    own_trouble_ = before_attempt();
    bool all_refused = true;
    for (const Address& address : id_.addresses) {
      const Outcome outcome = try_address(address);
      if (outcome == Outcome::joined) return;
      all_refused = all_refused && outcome == Outcome::refused;
    }
    if (all_refused) {
      note_refusal();
    } else {
      refusals_end_.reset();
    }
    if (deadline_.expired()) give_up_before_joining();
    report_no_server();
    std::this_thread::sleep_for(deadline_.remaining(pause));
    pause = std::min(pause * 2, kLongestPause);
  }
}

void RendezvousClient::report_no_server() {
  const auto due = reports_.next();
  const auto waited = Deadline::Clock::now() - begin_;
  if (!due || waited < *due) return;
  reports_.note_made();
  log(LogLevel::warning, "bootstrap", "rank ", hello_.rank, " has found no server at ", where(),
      " for ", elapsed_seconds(), " s (", last_trouble_, own_trouble_.empty() ? "" : "; ",
      own_trouble_, "); still trying: see whether the rank that serves there was started");
}

void RendezvousClient::note_missing(const Frame& frame) {
  const auto report = parse<Failure>(frame.payload);
  // The number of reports is bounded, so that a server cannot fill the log.
  if (!report || ++server_reports_ > MissingReports::kMost) refuse_protocol();
  log(LogLevel::warning, "bootstrap", report->text);
}

void RendezvousClient::note_refusal() {
  if (id_.kind != UniqueId::Kind::with_secret) return;
  if (!refusals_end_) refusals_end_ = Deadline::after(kRefusalPatience);
  if (!refusals_end_->expired()) return;
  throw Error(hcclSystemError,
              text("rank ", hello_.rank, ": nobody listens at ", where(), " any more: the process ",
                   "that made the unique id has exited, or its communicator is complete or "
                   "destroyed; make a new id and start all ranks again"));
}

RendezvousClient::Outcome RendezvousClient::try_address(const Address& address) {
  Outcome outcome = Outcome::unreachable;
  FileDescriptor socket = connect_to(address, outcome);
  if (!socket.valid()) return outcome;
  server_address_ = address;
  return join_over(std::move(socket)) ? Outcome::joined : Outcome::dropped;
}

FileDescriptor RendezvousClient::connect_to(const Address& address, Outcome& outcome) {
  FileDescriptor socket = tcp_socket(address.v6);
  const SocketAddress where = to_socket_address(address);
  int error = connect(socket.get(), where.get(), where.length) == 0 ? 0 : errno;
  if (error == EINPROGRESS || error == EINTR) error = await_connection(socket);
  // Without a listener, a connection may connect to itself, with the same port on both ends.
  if (error == 0 && local_address(socket.get()) == remote_address(socket.get())) {
    error = ECONNREFUSED;
  }
  if (error == 0) return socket;
  last_trouble_ = system_error_text(error);
  outcome = error == ECONNREFUSED ? Outcome::refused : Outcome::unreachable;
  return {};
}

// Waits for the attempt to connect. Returns its errno, or 0.
int RendezvousClient::await_connection(const FileDescriptor& socket) {
  DescriptorWait wait(loop_);
  if (const int error = wait.watch(socket.get()); error != 0) return error;
  bool is_done = false;
  wait.when_writable([&is_done] { is_done = true; });
  const Deadline limit = within(kConnectLimit);
  do {
    loop_.run_one(limit);
  } while (!is_done && !limit.expired());
  if (!is_done) return ETIMEDOUT;
  int error = ETIMEDOUT;
  socklen_t length = sizeof(error);
  getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

bool RendezvousClient::join_over(FileDescriptor socket, const Secret& nonce) {
  using Knowledge = SocketOwner::Knowledge;
  const FrameConnection::Ends ends{local_address(socket.get()), remote_address(socket.get())};
  const auto connection = std::make_shared<FrameConnection>(
      loop_, FrameConnection::Detached{std::move(socket), {}, std::nullopt, ends},
      FrameConnection::Limits{.payload = kLargePayload});
  const Bytes opening = serialize(Opening{kProtocolVersion, nonce, ends.own, ends.peer});
  connection->send(FrameType::opening, opening);
  last_trouble_ = "the connection was accepted but nobody answered";
  std::optional<Frame> frame = await_frame(*connection);
  if (!frame) return false;
  const Knowledge knowledge = server_user(connection->fd());
  server_is_known_ = !key_.empty() || knowledge == Knowledge::known;
  answer_greeting(*frame, opening, *connection);
  frame = await_frame(*connection);
  if (!frame) return false;
  if (knowledge == Knowledge::none && !server_is_known_) {
    last_trouble_ = "the server hung up before the kernel could tell which user it belongs to";
    return false;
  }
  read_welcome(*frame);
  connection_ = connection;
  return true;
}

std::optional<Frame> RendezvousClient::await_frame(FrameConnection& connection) {
  while (true) {
    if (std::optional<Frame> frame = connection.receive()) return frame;
    if (connection.broke_rules()) refuse_server(connection);
    if (connection.ended()) {
      last_trouble_ = text("the server ", connection.why());
      return std::nullopt;
    }
    loop_.run_one(within(MissingReports::kFirst));
    if (deadline_.expired()) give_up_before_joining();
    report_no_server();
  }
}

// Any user may listen on the port of HCCL_COMM_ID first and answer as the server. Within this
// machine the kernel knows which user's process has accepted the connection. Returns `known` if it
// is this user's, `none` if the other end is closed, and `untold` if the kernel is not asked or
// does not answer. Throws Error(hcclSocketError) if it belongs to another user.
SocketOwner::Knowledge RendezvousClient::server_user(int socket) const {
  using Knowledge = SocketOwner::Knowledge;
  if (id_.kind != UniqueId::Kind::fixed_address || !peer_is_local(socket)) return Knowledge::untold;
  const SocketOwner owner = tcp_peer_owner(socket);
  if (owner.knowledge == Knowledge::known && owner.user != geteuid()) {
    throw Error(hcclSocketError,
                text("rank ", hello_.rank, " runs as user ", geteuid(), ", but the server at ",
                     where(), " belongs to user ", owner.user, ", who can take port ",
                     server_address_.port, " first; choose another port in HCCL_COMM_ID"));
  }
  return owner.knowledge;
}

void RendezvousClient::answer_greeting(const Frame& frame, const Bytes& opening,
                                       FrameConnection& connection) {
  if (frame.type == FrameType::refusal) report_refusal(frame);
  const auto greeting =
      frame.type == FrameType::greeting ? parse<Opening>(frame.payload) : std::nullopt;
  if (!greeting) refuse_server(connection);
  if (greeting->version != kProtocolVersion) {
    throw Error(hcclSocketError,
                text("the server at ", where(), " speaks protocol ", greeting->version,
                     ", this library ", kProtocolVersion, "; use one version on all ranks"));
  }
  connection.authenticate(FrameSeal(FrameSeal::Role::rank, key_, opening, frame.payload));
  connection.send(FrameType::hello, serialize(hello_));
}

void RendezvousClient::read_welcome(const Frame& frame) {
  if (frame.type == FrameType::refusal) report_refusal(frame);
  if (frame.type == FrameType::failure) {
    if (const auto failure = parse<Failure>(frame.payload)) report_failure(*failure);
  }
  const auto welcome =
      frame.type == FrameType::welcome ? parse<Welcome>(frame.payload) : std::nullopt;
  if (!welcome) refuse_protocol();
  server_ = welcome->server;
  server_rank_ = welcome->server_rank;
  if (server_.shares_pids_with(hello_.process) && server_.pid != hello_.process.pid) {
    server_process_ = open_process(server_.pid);
    // If the process cannot be watched, the end of the connection reports its death.
    server_exit_.emplace(loop_);
    if (server_process_.valid() && server_exit_->watch(server_process_.get()) == 0)
      server_exit_->when_readable([this] { server_has_exited_ = true; });
  }
}

Table RendezvousClient::wait_for_table() {
  const Frame frame = wait_for(FrameType::table);
  auto table = parse<Table>(frame.payload);
  if (!table || table->ranks.size() != static_cast<std::size_t>(hello_.size)) {
    throw Error(hcclSocketError, text("the server at ", where(), " sent a malformed table of ",
                                      "ranks; use one version on all ranks"));
  }
  table->secret = communicator_secret(key_, table->salt);
  return *std::move(table);
}

std::vector<Bytes> RendezvousClient::finish(const Bytes& announced) {
  connection_->send(FrameType::ready, announced);
  auto all = parse<Announcements>(wait_for(FrameType::go).payload);
  if (!all || all->by_rank.size() != static_cast<std::size_t>(hello_.size)) refuse_protocol();
  return std::move(all->by_rank);
}

LinkSocket RendezvousClient::release() {
  return {connection_->detach(), hello_.rank, server_rank_, server_text(), server_is_known_};
}

void RendezvousClient::leave(const Failure& own) {
  if (!connection_ || connection_->ended()) return;
  connection_->send(FrameType::leaving, serialize(own));
  flush_last_words();
}

// Flushes the last frames, because no later call does.
void RendezvousClient::flush_last_words() {
  const Deadline patience = Deadline::after(kFlushPatience);
  while (connection_->has_unsent() && !patience.expired()) loop_.run_one(patience);
}

// While a caller waits for other ranks here, the server sends this rank only failures.
void RendezvousClient::wait(Deadline::Duration limit) {
  check_server();
  if (!kept_) run_once(limit);
  if (kept_) refuse_protocol();
}

void RendezvousClient::run_once(Deadline::Duration limit) {
  loop_.run_one(within(limit));
  check_server();
  if (!kept_ && deadline_.expired()) give_up();
}

std::optional<Frame> RendezvousClient::next_frame() {
  while (true) {
    std::optional<Frame> frame = connection_->receive();
    if (!frame) return frame;
    if (frame->type == FrameType::failure) {
      const auto failure = parse<Failure>(frame->payload);
      if (failure) report_failure(*failure);
    }
    if (frame->type == FrameType::missing) {
      note_missing(*frame);
      continue;
    }
    if (frame->type != FrameType::server_rank) return frame;
    // Accepted only once, because a server could otherwise keep this rank busy past every deadline.
    const auto rank = server_rank_ < 0 ? parse<RankMessage>(frame->payload) : std::nullopt;
    if (!rank) refuse_protocol();
    server_rank_ = rank->rank;
  }
}

// Reads frames first: the server may have sent the reason before it exited.
void RendezvousClient::check_server() {
  if (!kept_) kept_ = next_frame();
  if (server_has_exited_) await_last_words();
  if (kept_ || !(server_has_exited_ || connection_->ended())) return;
  if (connection_->forged()) throw Error(hcclSocketError, text(server_text(), ": ", kForgedFrame));
  throw Error(hcclSystemError, text(server_text(), " exited during initialisation; see its own ",
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
  if (frame.type != type) refuse_protocol();
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
  connection_->send(FrameType::gave_up,
                    serialize(GaveUp{static_cast<std::uint32_t>(std::lround(elapsed_seconds()))}));
  flush_last_words();
  const bool same_pids = server_.shares_pids_with(hello_.process);
  const char state = same_pids ? process_state(server_.pid) : '\0';
  const bool stopped = state == 'T' || state == 't';
  wait_for_verdict(
      {hcclInternalError,
       stopped ? text(server_text(), " has not answered for ", elapsed_seconds(),
                      " s: it is stopped (SIGSTOP or a debugger); continue it")
               : text("rank ", hello_.rank, ": not all ranks were there after ", elapsed_seconds(),
                      " s, and the server at ", where(), " (", server_text(),
                      ") does not say which; see whether it hangs, or raise HCCL_INIT_TIMEOUT")});
}

// Returns the earlier of this rank's deadline and `limit` from now.
Deadline RendezvousClient::within(Deadline::Duration limit) const {
  const bool is_sooner = deadline_.remaining(limit) < limit;
  return is_sooner ? deadline_ : Deadline::after(limit);
}

// Returns the time since the beginning, rounded to tenths below ten seconds for the sake of short
// limits.
double RendezvousClient::elapsed_seconds() const {
  const std::chrono::duration<double> elapsed = Deadline::Clock::now() - begin_;
  return elapsed.count() < 10 ? std::round(elapsed.count() * 10) / 10 : std::round(elapsed.count());
}

}  // namespace hccl::bootstrap
