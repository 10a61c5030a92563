// SPDX-License-Identifier: Apache-2.0
// Asio only reports that connections are waiting. accept4() accepts them, because Asio's own accept
// does not set close-on-exec.
#include "bootstrap/pending_connections.h"

#include "base/choose_victim.h"
#include "base/errno_advice.h"
#include "base/error.h"
#include "base/text.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <sys/socket.h>

namespace hccl::bootstrap {
namespace {

constexpr int kBacklog = 4096;
// The maximum number of connections accepted in one turn of the loop, so that accepted connections
// are served even while many others wait to be accepted.
constexpr int kMostAcceptedAtOnce = 16;
constexpr std::chrono::milliseconds kNoRoomPause{100};

}  // namespace

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

PendingConnections::PendingConnections(EventLoop& loop, FileDescriptor listener,
                                       const Limits& limits, Owner& owner)
    : loop_(loop),
      listener_(std::move(listener)),
      wait_(loop),
      pause_(loop),
      expiry_(loop),
      limits_(limits),
      owner_(owner) {
  if (const int error = wait_.watch(listener_.get()); error != 0) {
    throw Error(hcclSystemError,
                text("cannot watch the listening socket: ", system_error_text(error), "; ",
                     advice_on(error, "raise fs.epoll.max_user_watches")));
  }
}

PendingConnections::~PendingConnections() { close_all(); }

void PendingConnections::start() { wait_for_connection(); }

void PendingConnections::close_listener() {
  pause_.cancel();
  wait_.close();
  // A child process may hold the socket open, but must not keep it listening.
  if (listener_.valid()) shutdown(listener_.get(), SHUT_RDWR);
  listener_.reset();
}

void PendingConnections::close_all() {
  close_listener();
  expiry_.cancel();
  for (const Pending& pending : std::exchange(pending_, {})) pending.connection->close();
  rejections_.report_omitted();
}

void PendingConnections::wait_for_connection() {
  if (paused_ || !listener_.valid() || waiting_) return;
  wait_.when_readable([this] {
    waiting_ = false;
    if (!paused_) accept_some();
  });
  waiting_ = true;  // not reached if when_readable() throws
}

void PendingConnections::accept_some() {
  wait_for_connection();  // comes first, because the code below may throw
  for (int count = 0; count < kMostAcceptedAtOnce && listener_.valid() && !paused_; ++count) {
    SocketAddress peer;
    FileDescriptor socket(
        accept4(listener_.get(), peer.get(), &peer.length, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.valid()) {
      owner_.on_accepted(std::move(socket), peer);
      continue;
    }
    const int error = errno;
    if (error == EAGAIN) return;
    if (error == EINTR || error == ECONNABORTED) continue;
    if (count > 0) return;  // the connections just accepted are served before any is dropped
    if (!owner_.on_no_room(error)) return;
  }
}

void PendingConnections::pause_accepting() {
  paused_ = true;
  pause_.start(kNoRoomPause, [this] {
    paused_ = false;
    accept_some();
  });
}

void PendingConnections::add(FrameConnection::Detached connection) {
  if (pending_.size() >= limits_.connections)
    static_cast<void>(drop_one("had not authenticated when newer connections arrived"));
  const auto added =
      std::make_shared<FrameConnection>(loop_, std::move(connection), limits_.frames);
  added->set_owner(this);
  pending_.push_back({added, Deadline::after(limits_.time), *this});
  watch_deadlines();
  on_activity(*added);
}

bool PendingConnections::make_room() {
  return drop_one("had not authenticated when descriptors or memory ran out");
}

// Returns false if there is no connection.
bool PendingConnections::drop_one(const std::string& why) {
  if (pending_.empty()) return false;
  const auto dropped = choose_victim(
      pending_, [](const Pending& one) { return one.connection->has_heard(); },
      [](const Pending& one) { return one.connection->ends().peer; });
  reject(*dropped, why);
  return true;
}

void PendingConnections::watch_deadlines() {
  if (pending_.empty() || expiry_is_set_) return;
  expiry_.start(pending_.front().deadline.remaining(), [this] {
    expiry_is_set_ = false;
    drop_expired();
    watch_deadlines();
  });
  expiry_is_set_ = true;  // not reached if start() throws
}

void PendingConnections::drop_expired() {
  while (!pending_.empty() && pending_.front().deadline.expired())
    reject(pending_.front(), "did not authenticate in time");
}

void PendingConnections::on_activity(FrameConnection& connection) {
  const auto self = connection.shared_from_this();
  while (Pending* const pending = find(connection)) {
    std::optional<Frame> frame = connection.receive();
    if (!frame) break;
    owner_.on_pending_frame(*pending, *frame);
  }
  Pending* const pending = find(connection);
  if (pending != nullptr && connection.ended()) reject(*pending, connection.why());
}

std::shared_ptr<FrameConnection> PendingConnections::take(Pending& pending) {
  std::shared_ptr<FrameConnection> connection = std::move(pending.connection);
  connection->set_owner(nullptr);
  std::erase_if(pending_, [&](const Pending& one) { return &one == &pending; });
  return connection;
}

void PendingConnections::reject(Pending& pending, const std::string& why) {
  const FrameConnection& connection = *pending.connection;
  const auto peer = [&] { return connection.peer_text(); };
  if (connection.has_heard() || !connection.ended()) {
    rejections_.report(peer, why);
  } else {
    rejections_.report_silent(peer);
  }
  take(pending)->close();
}

PendingConnections::Pending* PendingConnections::find(const FrameConnection& connection) {
  const auto found = std::ranges::find_if(
      pending_, [&](const Pending& one) { return one.connection.get() == &connection; });
  return found == pending_.end() ? nullptr : &*found;
}

}  // namespace hccl::bootstrap
