// SPDX-License-Identifier: Apache-2.0
// Plain sockets and poll: the caller's thread waits here, with a deadline, for everything.
#include "bootstrap/rendezvous_client.h"

#include "base/error.h"
#include "base/peer_process.h"
#include "base/process.h"
#include "base/text.h"
#include "bootstrap/poll.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <thread>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace hccl::bootstrap {
namespace {

constexpr std::chrono::milliseconds kFirstPause{2};
constexpr std::chrono::milliseconds kLongestPause{50};
constexpr std::chrono::seconds kConnectLimit{5};
// An id with a secret has had its server since before it existed: if nobody listens, it is over.
constexpr std::chrono::milliseconds kRefusalPatience{500};
constexpr std::chrono::seconds kVerdictPatience{1};

FileDescriptor tcp_socket(bool v6) {
  FileDescriptor result(
      socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!result.valid()) {
    throw Error(hcclSystemError,
                text("cannot make a socket: ", system_error_text(errno), "; raise ulimit -n"));
  }
  const int on = 1;
  // With the port number of an outgoing connection marked as reusable, the server can still take
  // it.
  setsockopt(result.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  setsockopt(result.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return result;
}

}  // namespace

RendezvousClient::RendezvousClient(UniqueId id, Bytes key, Hello hello, Deadline deadline)
    : id_(std::move(id)), key_(std::move(key)), hello_(std::move(hello)), deadline_(deadline) {}

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
    std::this_thread::sleep_for(deadline_.remaining(pause));
    pause = std::min(pause * 2, kLongestPause);
  }
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
  if (error == EINPROGRESS || error == EINTR) {
    std::vector<pollfd> wanted{{socket.get(), POLLOUT, 0}};
    const auto limit = Deadline::after(deadline_.remaining(kConnectLimit));
    error = ETIMEDOUT;
    if (poll_until(wanted, limit) > 0) {
      socklen_t length = sizeof(error);
      getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    }
  }
  // Without a listener a connection may by chance meet itself: same port on both ends.
  if (error == 0 && local_address(socket.get()) == remote_address(socket.get())) {
    error = ECONNREFUSED;
  }
  if (error == 0) return socket;
  last_trouble_ = system_error_text(error);
  outcome = error == ECONNREFUSED ? Outcome::refused : Outcome::unreachable;
  return {};
}

bool RendezvousClient::join_over(FileDescriptor socket) {
  FrameChannel channel(std::move(socket), kLargePayload);
  // Said before anything is read, so that a rank that dies from here on is known by name.
  channel.send(FrameType::early_hello, serialize(hello_, key_, kNoNonce));
  last_trouble_ = "the connection was accepted but nobody answered";
  std::optional<Frame> frame = await_frame(channel);
  if (!frame) return false;
  read_greeting(*frame, channel);
  frame = await_frame(channel);
  if (!frame) return false;
  read_welcome(*frame);
  channel_.emplace(std::move(channel));
  return true;
}

std::optional<Frame> RendezvousClient::await_frame(FrameChannel& channel) {
  while (true) {
    if (std::optional<Frame> frame = channel.receive()) return frame;
    if (channel.broke_rules()) refuse_server();
    if (channel.closed()) {
      last_trouble_ = text("the server ", channel.why());
      return std::nullopt;
    }
    std::vector<pollfd> wanted{{channel.fd(), channel.events(), 0}};
    if (poll_until(wanted, deadline_) == 0) give_up_before_joining();
    channel.flush();
  }
}

void RendezvousClient::read_greeting(const Frame& frame, FrameChannel& channel) {
  const auto greeting =
      frame.type == FrameType::greeting ? parse_greeting(frame.payload) : std::nullopt;
  if (!greeting) refuse_server();
  if (greeting->version != kProtocolVersion) {
    throw Error(hcclSocketError,
                text("the server at ", where(), " speaks protocol ", greeting->version,
                     ", this library ", kProtocolVersion, "; use one version on all ranks"));
  }
  channel.send(FrameType::hello, serialize(hello_, key_, greeting->nonce));
}

void RendezvousClient::refuse_server() const {
  throw Error(hcclSocketError,
              text("the program that listens at ", where(), " is no hccl server; choose a port ",
                   "that is free, or end that program"));
}

void RendezvousClient::read_welcome(const Frame& frame) {
  if (frame.type == FrameType::refusal) {
    const auto refusal = parse_failure(frame.payload);
    if (refusal) throw Error(refusal->code, refusal->text);
  }
  const auto welcome =
      frame.type == FrameType::welcome ? parse_welcome(frame.payload) : std::nullopt;
  if (!welcome || !welcome_proves(frame.payload, key_, hello_.nonce)) {
    throw Error(hcclSocketError, text("the server at ", where(),
                                      " does not know the secret of "
                                      "this communicator; choose another port"));
  }
  server_ = welcome->server;
  server_rank_ = welcome->server_rank;
  if (server_.shares_pids_with(hello_.process) && server_.pid != hello_.process.pid) {
    server_process_ = open_process(server_.pid);
  }
}

Table RendezvousClient::wait_for_table() {
  const Frame frame = wait_for(FrameType::table);
  auto table = parse_table(frame.payload);
  if (!table || table->ranks.size() != static_cast<std::size_t>(hello_.size)) {
    throw Error(hcclSocketError, text("the server at ", where(), " sent a malformed table of ",
                                      "ranks; use one version on all ranks"));
  }
  return *std::move(table);
}

std::vector<Bytes> RendezvousClient::finish(const Bytes& announced) {
  channel_->send(FrameType::ready, announced);
  auto all = parse_announcements(wait_for(FrameType::go).payload);
  if (!all || all->size() != static_cast<std::size_t>(hello_.size)) refuse_protocol();
  return *std::move(all);
}

LinkSocket RendezvousClient::release() {
  LinkSocket link;
  link.socket = channel_->release(link.heard);
  link.rank = hello_.rank;
  link.server_rank = server_rank_;
  link.server = server_text();
  return link;
}

void RendezvousClient::leave(const Failure& own) noexcept {
  if (channel_) channel_->send(FrameType::leaving, serialize(own));
}

void RendezvousClient::wait(std::vector<pollfd>& others, Deadline::Duration limit) {
  check_server();
  if (kept_) return note_kept(others);
  const std::size_t count = others.size();
  others.push_back({channel_->fd(), channel_->events(), 0});
  others.push_back({server_process_.get(), POLLIN, 0});
  const Deadline until = deadline_.remaining(limit) < limit ? deadline_ : Deadline::after(limit);
  const int ready = poll_until(others, until);
  others.resize(count);
  if (ready == 0 && deadline_.expired()) give_up();
  channel_->flush();
  check_server();
  if (kept_) return note_kept(others);
  if (deadline_.expired()) give_up();  // however much is said
}

// While this rank waits for others too, the server has nothing to say but failures.
void RendezvousClient::note_kept(const std::vector<pollfd>& others) const {
  if (!others.empty()) refuse_protocol();
}

std::optional<Frame> RendezvousClient::next_frame() {
  while (true) {
    std::optional<Frame> frame = channel_->receive();
    if (!frame) return frame;
    if (frame->type == FrameType::failure) {
      const auto failure = parse_failure(frame->payload);
      if (failure) throw Error(failure->code, failure->text);
    }
    if (frame->type != FrameType::server_rank) return frame;
    // Said once, or a server could talk past every deadline.
    const auto rank = server_rank_ < 0 ? parse_rank(frame->payload) : std::nullopt;
    if (!rank || *rank < 0) refuse_protocol();
    server_rank_ = *rank;
  }
}

// Frames first: the server may have said why before it went.
void RendezvousClient::check_server() {
  const bool exited = has_exited(server_process_);
  if (!kept_) kept_ = next_frame();
  if (exited) await_last_words();
  if (kept_ || !(exited || channel_->closed())) return;
  throw Error(hcclSystemError, text(server_text(), " exited during initialisation; see its own ",
                                    "output, then start all ranks again"));
}

void RendezvousClient::await_last_words() {
  const Deadline patience = Deadline::after(kLastWords);
  while (!kept_ && !channel_->closed() && !patience.expired()) {
    std::vector<pollfd> wanted{{channel_->fd(), POLLIN, 0}};
    poll_until(wanted, patience);
    kept_ = next_frame();
  }
}

Frame RendezvousClient::wait_for(FrameType type) {
  while (!kept_) {
    std::vector<pollfd> none;
    wait(none);
  }
  Frame frame = *std::exchange(kept_, std::nullopt);
  if (frame.type != type) refuse_protocol();
  return frame;
}

void RendezvousClient::refuse_protocol() const {
  throw Error(hcclSocketError, text("the server at ", where(), " broke the protocol; use one ",
                                    "version on all ranks"));
}

void RendezvousClient::wait_for_verdict(const Failure& otherwise) {
  const Deadline patience = Deadline::after(kVerdictPatience);
  while (!patience.expired()) {
    kept_.reset();
    check_server();
    if (kept_) continue;
    std::vector<pollfd> wanted{{channel_->fd(), POLLIN, 0}, {server_process_.get(), POLLIN, 0}};
    poll_until(wanted, patience);
  }
  throw Error(otherwise.code, otherwise.text);
}

void RendezvousClient::give_up() {
  channel_->send(FrameType::gave_up,
                 serialize(GaveUp{static_cast<std::uint32_t>(std::lround(elapsed_seconds()))}));
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

void RendezvousClient::give_up_before_joining() {
  const bool unanswered = server_address_.port != 0;
  throw Error(
      hcclInternalError,
      text("rank ", hello_.rank, " found no server at ", where(), " within ", elapsed_seconds(),
           " s (", last_trouble_, own_trouble_.empty() ? "" : "; ", own_trouble_, "); ",
           unanswered ? "see whether the program that listens there is stopped, hangs or is "
                        "another one"
                      : "start the rank that calls hcclGetUniqueId",
           ", or raise HCCL_INIT_TIMEOUT"));
}

// Tenths, for limits below a second.
double RendezvousClient::elapsed_seconds() const {
  const std::chrono::duration<double> elapsed = Deadline::Clock::now() - begin_;
  return elapsed.count() < 10 ? std::round(elapsed.count() * 10) / 10 : std::round(elapsed.count());
}

std::string RendezvousClient::where() const {
  if (server_address_.port != 0) return server_address_.to_text();
  std::string list;
  for (const Address& address : id_.addresses) {
    list += text(list.empty() ? "" : " or ", address.to_text());
  }
  return list;
}

std::string RendezvousClient::server_text() const {
  if (server_rank_ >= 0) return describe(server_rank_, server_);
  return text("the process that made the unique id (pid ", server_.pid, ", host ", server_.host,
              ')');
}

}  // namespace hccl::bootstrap
