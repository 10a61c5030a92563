// SPDX-License-Identifier: Apache-2.0
// Who may join: judges new connections by their first bytes and hellos by the rules of Rendezvous,
// and bounds what strangers can take.
#include "base/log.h"
#include "base/secret.h"
#include "base/text.h"
#include "bootstrap/id_server.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hccl::bootstrap {
namespace {

// Connections that have not said who they are. Few: others of this process need descriptors too,
// and each time their number outgrows 64, 128, 256, ..., the kernel lets the thread wait for a
// grace period of RCU, ten milliseconds on a busy machine.
std::size_t most_pending() {
  constexpr std::size_t kLeast = 8;
  constexpr std::size_t kMost = 64;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kLeast;
  return std::clamp(static_cast<std::size_t>(limit.rlim_cur / 8), kLeast, kMost);
}

// A refusal without a session: the greeting that every rank expects, and why.
void dismiss(const FileDescriptor& socket, const Failure& failure) {
  Bytes said = encode_frame(FrameType::greeting, serialize(Greeting{}));
  const Bytes refusal = encode_frame(FrameType::refusal, serialize(failure));
  said.insert(said.end(), refusal.begin(), refusal.end());
  static_cast<void>(send(socket.get(), said.data(), said.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
}

void note_silent_leave(const Address& peer) {
  if (!log_enabled(LogLevel::info)) return;
  log(LogLevel::info, "bootstrap", peer.to_text(), " connected and closed the connection");
}

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

// Most strangers have said the wrong thing before they are accepted: they are worth no session.
void IdServer::take_connection(FileDescriptor socket, const Address& peer) {
  std::array<std::byte, kFrameHeaderSize + kSmallPayload> buffer;  // filled by recv
  const ssize_t count = recv(socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR))
    return note_silent_leave(peer);
  const auto heard = std::span(buffer).first(count > 0 ? static_cast<std::size_t>(count) : 0);
  if (!may_become_hello(heard))
    return cut_off(socket, peer, "sent bytes that are no hello of ours");
  if (const auto hello = first_payload(heard, FrameType::early_hello)) {
    if (!parse_hello(*hello)) return cut_off(socket, peer, "sent a malformed hello");
    if (!hello_proves(*hello, key_, kNoNonce)) {
      report_stranger(peer, "does not know the secret");
      return dismiss(socket, wrong_proof(id_));
    }
  }
  add_session(std::move(socket), peer, {heard.begin(), heard.end()});
}

// With a reset, which leaves nothing of the connection behind in the kernel.
void IdServer::cut_off(const FileDescriptor& socket, const Address& peer, const char* why) {
  const linger at_once{1, 0};
  setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  report_stranger(peer, why);
}

void IdServer::add_session(FileDescriptor socket, const Address& peer, Bytes heard) {
  const auto pending = std::ranges::count_if(sessions_, [](const auto& s) { return s->rank < 0; });
  if (static_cast<std::size_t>(pending) >= most_pending()) make_room();
  const auto session = std::make_shared<Session>(std::move(socket), peer, *this);
  sessions_.push_back(session);
  session->set_deadline(hello_limit_);
  session->start(std::move(heard));
}

// Only now: who has said nothing yet is told nothing.
void IdServer::greet(Session& session) {
  if (std::exchange(session.greeted, true)) return;
  session.nonce = random_secret();
  session.send(FrameType::greeting, serialize(Greeting{kProtocolVersion, session.nonce}));
}

// Ranks say hello at once, so the connection that has been silent longest is a stranger's.
bool IdServer::make_room() {
  const auto oldest = std::ranges::find_if(sessions_, [](const auto& s) { return s->rank < 0; });
  if (oldest == sessions_.end()) return false;
  const SessionPointer session = *oldest;
  session->close();
  reject(*session, "was silent while too many others wait");
  forget(*session);
  return true;
}

void IdServer::on_hello(Session& session, const Frame& frame) {
  // An early hello could be a recording of another run's. That matters only if it comes from
  // elsewhere: there, wait for the one that answers this session's nonce.
  const bool early = frame.type == FrameType::early_hello;
  const bool repeated = early && std::exchange(session.said_early_hello, true);
  if (early && !repeated && !session.is_local()) return;
  const auto hello = repeated ? std::nullopt : parse_hello(frame.payload);
  if (!hello) {
    session.close();
    reject(session, "sent a malformed hello");
    return forget(session);
  }
  if (!hello_proves(frame.payload, key_, early ? kNoNonce : session.nonce)) {
    reject(session, "does not know the secret");
    return refuse(session, wrong_proof(id_));
  }
  if (const auto failure = wrong_user(session)) {
    reject(session, text("was refused: ", failure->text));
    return refuse(session, *failure);
  }
  if (const auto failure = rendezvous_.admit(*hello, session.peer().to_text())) {
    const bool concerns_all = rendezvous_.phase() == Rendezvous::Phase::failed && !ended_;
    if (!rendezvous_.is_over()) reject(session, text("was refused: ", failure->text));
    refuse(session, *failure);
    if (rendezvous_.phase() == Rendezvous::Phase::failed) note_told(hello->rank);
    if (concerns_all) settle();
    return;
  }
  seat(session, *hello);
}

// Without a secret, a rank on this machine is at least known by its user.
std::optional<Failure> IdServer::wrong_user(const Session& session) const {
  if (!key_.empty() || !session.is_local()) return std::nullopt;
  const SocketOwner owner = session.peer_owner();
  if (owner.knowledge == SocketOwner::Knowledge::untold) return std::nullopt;
  if (owner.knowledge == SocketOwner::Knowledge::none) {
    return Failure{hcclInvalidArgument,
                   "it hung up before it was known whose process it is; start it again"};
  }
  if (owner.user == geteuid()) return std::nullopt;
  return Failure{hcclInvalidArgument, text("it belongs to user ", owner.user, ", this job to user ",
                                           geteuid(), "; run all ranks as one user")};
}

void IdServer::refuse(Session& session, const Failure& failure) {
  session.send(FrameType::refusal, serialize(failure));
  session.finish();
  forget(session);
}

void IdServer::reject(const Session& session, const std::string& why) {
  if (session.left_silently) return note_silent_leave(session.peer());
  report_stranger(session.peer(), why);
}

void IdServer::report_stranger(const Address& peer, const std::string& why) {
  strangers_.report([&] { return peer.to_text(); }, why);
}

void IdServer::forget(const Session& session) {
  std::erase_if(sessions_, [&](const SessionPointer& other) { return other.get() == &session; });
}

}  // namespace hccl::bootstrap
