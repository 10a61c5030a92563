// SPDX-License-Identifier: Apache-2.0
// Admission of ranks: judges new connections by their first bytes and hellos by the rules of
// Rendezvous, and bounds what strangers can take.
#include "base/log.h"
#include "base/retry.h"
#include "base/secret.h"
#include "base/text.h"
#include "bootstrap/root_server.h"

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

void note_silent_leave(const Address& peer) {
  if (!log_enabled(LogLevel::info)) return;
  log(LogLevel::info, "bootstrap", peer.to_text(), " connected and closed the connection");
}

}  // namespace

// Most strangers have said the wrong thing before they are accepted: they are worth no session.
void RootServer::take_connection(FileDescriptor socket, const Address& peer) {
  std::array<std::byte, kFrameHeaderSize + kSmallPayload> buffer;  // filled by recv
  const ssize_t count = recv(socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR))
    return note_silent_leave(peer);
  const auto heard = std::span(buffer).first(count > 0 ? static_cast<std::size_t>(count) : 0);
  if (!may_become_hello(heard))
    return cut_off(socket, peer, "sent bytes that are no hello of ours");
  const auto opening = first_payload(heard, FrameType::opening);
  if (opening && !parse<Opening>(*opening))
    return cut_off(socket, peer, "sent a malformed opening");
  add_session(std::move(socket), peer, {heard.begin(), heard.end()});
}

// With a reset, which leaves nothing of the connection behind in the kernel.
void RootServer::cut_off(const FileDescriptor& socket, const Address& peer, const char* why) {
  const linger at_once{1, 0};
  setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  report_stranger(peer, why);
}

void RootServer::add_session(FileDescriptor socket, const Address& peer, Bytes heard) {
  const auto pending = std::ranges::count_if(sessions_, [](const auto& s) { return s->rank < 0; });
  if (static_cast<std::size_t>(pending) >= most_pending()) make_room();
  const auto session = std::make_shared<Session>(std::move(socket), peer, *this);
  sessions_.push_back(session);
  session->set_deadline(hello_limit_);
  session->start(std::move(heard));
}

// Ranks open at once and answer the greeting at once. The connection that has been silent longest
// is a stranger's; if all have opened, so is the oldest.
bool RootServer::make_room() {
  const auto first_where = [this](auto condition) {
    return std::ranges::find_if(sessions_, condition);
  };
  auto oldest = first_where([](const auto& s) { return s->rank < 0 && !s->greeted; });
  if (oldest == sessions_.end()) oldest = first_where([](const auto& s) { return s->rank < 0; });
  if (oldest == sessions_.end()) return false;
  drop(*SessionPointer(*oldest), "was silent while too many others wait");
  return true;
}

// The greeting waits for the opening: who says nothing is told nothing.
void RootServer::on_opening(Session& session, const Frame& frame) {
  const auto opening =
      frame.type == FrameType::opening ? parse<Opening>(frame.payload) : std::nullopt;
  if (!opening) return drop(session, "sent a malformed opening");
  if (opening->version != kProtocolVersion) {
    return refuse(session, Refusal::other_version,
                  text("speaks protocol ", opening->version, ", this process ", kProtocolVersion));
  }
  session.greeted = true;
  session.opening = *opening;
  const Bytes greeting =
      serialize(Opening{kProtocolVersion, random_secret(), session.own_address(), session.peer()});
  session.send(FrameType::greeting, greeting);
  session.authenticate(FrameSeal(FrameSeal::Role::server, key_, frame.payload, greeting));
}

void RootServer::on_hello(Session& session, const Frame& frame) {
  const auto hello = frame.type == FrameType::hello ? parse<Hello>(frame.payload) : std::nullopt;
  if (!hello) return drop(session, "sent a malformed hello");
  if (const std::string why = wrong_user(session); !why.empty())
    return refuse(session, Refusal::other_user, text("was refused: ", why));
  if (const auto failure = rendezvous_.admit(*hello, session.peer().to_text())) {
    const bool concerns_all = rendezvous_.phase() == Rendezvous::Phase::failed && !ended_;
    if (!rendezvous_.is_over()) reject(session, text("was refused: ", failure->text));
    session.send(FrameType::failure, serialize(*failure));
    session.finish();
    forget(session);
    if (rendezvous_.phase() == Rendezvous::Phase::failed) note_told(hello->rank);
    if (concerns_all) settle();
    return;
  }
  if (session.opening.here != session.peer() || session.opening.there != session.own_address()) {
    log(LogLevel::info, "bootstrap", "rank ", hello->rank, " connected from ",
        session.opening.here.to_text(), " to ", session.opening.there.to_text(), " and arrived as ",
        session.peer().to_text(), " at ", session.own_address().to_text(),
        ": something between translates addresses or relays");
  }
  seat(session, *hello);
}

// Everybody can find the port of HCCL_COMM_ID. The kernel says which user a process of this machine
// belongs to, whatever else that process can prove. Returns what is wrong with it; empty if
// nothing is.
std::string RootServer::wrong_user(const Session& session) const {
  if (id_.kind != UniqueId::Kind::fixed_address || !session.is_local()) return {};
  const SocketOwner owner = session.peer_owner();
  if (owner.knowledge == SocketOwner::Knowledge::untold) return {};
  if (owner.knowledge == SocketOwner::Knowledge::none)
    return "it hung up before it was known whose process it is; start it again";
  if (owner.user == geteuid()) return {};
  return text("it belongs to user ", owner.user, ", this job to user ", geteuid(),
              "; run all ranks as one user");
}

// The words of a rank that was taken at its word are quoted, not repeated as the library's own.
Failure RootServer::as_believed(const Session& session, Failure failure) const {
  if (key_.empty() && !session.is_local()) failure.text = quoted(failure.text);
  return failure;
}

void RootServer::refuse(Session& session, Refusal::Reason reason, const std::string& why) {
  reject(session, why);
  session.send_openly(FrameType::refusal, serialize(Refusal{reason}));
  session.finish();
  forget(session);
}

void RootServer::drop(Session& session, const std::string& why) {
  session.close();
  reject(session, why);
  forget(session);
}

void RootServer::reject(const Session& session, const std::string& why) {
  if (session.left_silently) return note_silent_leave(session.peer());
  report_stranger(session.peer(), why);
}

void RootServer::report_stranger(const Address& peer, const std::string& why) {
  rejections_.report([&] { return peer.to_text(); }, why);
}

void RootServer::forget(const Session& session) {
  std::erase_if(sessions_, [&](const SessionPointer& other) { return other.get() == &session; });
}

}  // namespace hccl::bootstrap
