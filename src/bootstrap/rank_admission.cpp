// SPDX-License-Identifier: Apache-2.0
// A TCP connection proceeds from the TLS handshake, in which both ends prove that they know the
// key, to the hello. A unix socket begins with the hello. A peer that sends nothing learns nothing.
#include "bootstrap/rank_admission.h"

#include "base/log.h"
#include "base/peer_process.h"
#include "base/text.h"
#include "bootstrap/socket_owner.h"
#include "crypto/openssl_call.h"
#include "crypto/tls_session.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <span>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hccl::bootstrap {
namespace {

constexpr const char* kUnreadableHello =
    "sent a hello message that this version cannot read; if it is a rank, install the same "
    "version of hccl on its host";

constexpr std::chrono::seconds kComplaintPeriod{10};

// Returns the maximum number of pending connections. This number is small, because other parts of
// the process need descriptors too, and because the kernel makes the thread wait for an RCU grace
// period (10 ms on a busy machine) whenever the number of descriptors first exceeds 64 or a higher
// power of two.
std::size_t most_pending() {
  constexpr std::size_t kLeast = 8;
  constexpr std::size_t kMost = 64;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kLeast;
  return std::clamp(static_cast<std::size_t>(limit.rlim_cur / 8), kLeast, kMost);
}

}  // namespace

RankAdmission::RankAdmission(EventLoop& loop, const UniqueId& id, JoinKey key,
                             FileDescriptor listener, FileDescriptor local_listener,
                             std::chrono::milliseconds hello_limit, Owner& owner)
    : id_(id),
      key_(std::move(key)),
      owner_(owner),
      remote_(loop, std::move(listener),
              {.connections = most_pending(), .time = hello_limit, .frames = {}}, *this) {
  if (local_listener.valid()) {
    PendingConnections::Owner& self = *this;
    local_.emplace(loop, std::move(local_listener),
                   PendingConnections::Limits{
                       .connections = most_pending(), .time = hello_limit, .frames = {}},
                   self);
  }
}

void RankAdmission::start() {
  remote_.start();
  if (local_) local_->start();
}

void RankAdmission::close_listeners() {
  if (local_) local_->close_listener();
  remote_.close_listener();
}

void RankAdmission::close_all() {
  if (local_) local_->close_all();
  remote_.close_all();
}

// Drops a TCP connection if there is one, because a flood over TCP must not keep out the ranks on
// this host. If nothing is left to drop, pauses: only other parts of the process can release
// descriptors.
bool RankAdmission::on_no_room(int /*error*/) {
  if (remote_.make_room() || (local_ && local_->make_room())) return true;
  complain_about_no_room();
  remote_.pause_accepting();
  if (local_) local_->pause_accepting();
  return false;
}

void RankAdmission::complain_about_no_room() {
  if (next_complaint_ && !next_complaint_->expired()) return;
  next_complaint_ = Deadline::after(kComplaintPeriod);
  log(LogLevel::error, "bootstrap", "cannot accept connections for lack of descriptors or ",
      "memory; raise ulimit -n");
}

void RankAdmission::add_local(FileDescriptor socket) {
  std::optional<bool> is_trusted = peer_may_be_inspected(socket.get());
  if (!is_trusted && on_no_room(errno)) is_trusted = peer_may_be_inspected(socket.get());
  if (!is_trusted) return;  // the rank joins over TCP
  if (*is_trusted) return local_->add({std::move(socket)});
  local_->rejections().report([&] { return peer_text(socket.get()); },
                              "belongs to another user, is in another container, or has exited");
}

// Most foreign peers have sent wrong bytes by the time their connections are accepted. Such
// connections are reset before any object is created for them.
void RankAdmission::on_accepted(FileDescriptor socket, const SocketAddress& from) {
  if (from.get()->sa_family == AF_UNIX) return add_local(std::move(socket));
  const Address peer = from_socket_address(from.get());
  std::array<std::byte, kFrameHeaderSize + kSmallPayload>
      buffer;  // not initialised, because recv() fills it
  const ssize_t count = recv(socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) {
    return remote_.rejections().report_silent([&] { return peer.to_text(); });
  }
  const auto heard = std::span(buffer).first(count > 0 ? static_cast<std::size_t>(count) : 0);
  if (!crypto::may_become_tls_record(heard)) return cut_off(socket, peer, FrameConnection::kNotTls);
  if (!crypto::OpensslCall().is_possible()) return;  // the process is exiting
  const int on = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  const Address own = local_address(socket.get());
  remote_.add({std::move(socket),
               {own, peer},
               std::make_shared<crypto::TlsSession>(crypto::TlsRole::server, key_.session_key()),
               {heard.begin(), heard.end()}});
}

// Makes the socket reset its connection on close, so that no state remains in the kernel. Logs the
// rejection.
void RankAdmission::cut_off(const FileDescriptor& socket, const Address& peer, const char* why) {
  const linger at_once{1, 0};
  setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  remote_.rejections().report([&] { return peer.to_text(); }, why);
}

void RankAdmission::on_pending_frame(Pending& pending, Frame& frame) {
  const auto hello = frame.type == FrameType::hello ? parse<Hello>(frame.payload) : std::nullopt;
  if (!hello) return pending.list.reject(pending, kUnreadableHello);
  if (hello->version != kProtocolVersion) {
    return turn_away(pending, Refusal::other_version,
                     text("speaks protocol version ", hello->version,
                          ", but this process speaks version ", kProtocolVersion));
  }
  if (const std::string why = wrong_user(*pending.connection); !why.empty())
    return turn_away(pending, Refusal::other_user, text("was refused: ", why));
  if (pending.connection->is_local() && hello->secret_check != key_.check()) {
    return turn_away(pending, Refusal::other_secret, "has a different secret");
  }
  owner_.on_hello(pending, *hello);
}

void RankAdmission::turn_away(Pending& pending, Refusal::Reason reason, const std::string& why) {
  pending.list.rejections().report([&] { return pending.connection->peer_text(); }, why);
  const auto connection = take(pending);
  connection->send(FrameType::refusal, serialize(Refusal{reason}));
  connection->finish();
}

void RankAdmission::refuse(Pending& pending, const Failure& failure, bool is_logged) {
  if (is_logged) {
    pending.list.rejections().report([&] { return pending.connection->peer_text(); },
                                     text("was refused: ", failure.text));
  }
  const auto connection = take(pending);
  connection->send(FrameType::failure, serialize(failure));
  connection->finish();
}

bool RankAdmission::is_taken_at_its_word(const FrameConnection& connection) const {
  return !key_.is_secret() && !connection.is_local() && !peer_is_local(connection.fd());
}

// Returns why the peer's user may not join, or an empty text. Any process can find the port of
// HCCL_COMM_ID, so the user of each peer on this machine is checked even if there is a key, unless
// the kernel or a sandbox does not report users.
std::string RankAdmission::wrong_user(const FrameConnection& connection) const {
  if (connection.is_local() || id_.kind != UniqueId::Kind::fixed_address ||
      !peer_is_local(connection.fd())) {
    return {};
  }
  const SocketOwner owner = tcp_peer_owner(connection.fd());
  if (owner.knowledge == SocketOwner::Knowledge::unknown) return {};
  if (owner.knowledge == SocketOwner::Knowledge::none)
    return "its user could not be determined; start that rank again";
  if (owner.user == geteuid()) return {};
  return text("it belongs to user ", owner.user, ", but this job belongs to user ", geteuid(),
              "; run all ranks as one user");
}

}  // namespace hccl::bootstrap
