// SPDX-License-Identifier: Apache-2.0
// Asio waits for connections; accept4 takes them, for Asio's own accept leaves a moment without
// close-on-exec.
#include "bootstrap/acceptor.h"

#include "base/deadline.h"
#include "base/errno_advice.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "bootstrap/control_thread.h"

#include <cerrno>
#include <optional>

#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <sys/socket.h>

namespace hccl::bootstrap {
namespace {

constexpr int kBacklog = 4096;
// Connections accepted in one turn: ranks that have been let in are served between turns, however
// many connections wait.
constexpr int kMostAtOnce = 16;
constexpr std::chrono::milliseconds kNoDescriptorsPause{100};
constexpr std::chrono::seconds kComplaintPeriod{10};

}  // namespace

struct Acceptor::Io {
  explicit Io(asio::io_context& context) : acceptor(context), timer(context) {}

  asio::ip::tcp::acceptor acceptor;
  asio::steady_timer timer;
  bool pausing = false;
  std::optional<Deadline> next_complaint;
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

Acceptor::Acceptor(FileDescriptor listener)
    : io_(std::make_unique<Io>(ControlThread::instance().context())) {
  const bool v6 = local_address(listener.get()).v6;
  std::error_code error;
  io_->acceptor.assign(v6 ? asio::ip::tcp::v6() : asio::ip::tcp::v4(), listener.get(), error);
  if (error) {
    throw Error(hcclSystemError, text("cannot watch the listening socket: ", error.message(), "; ",
                                      advice_on(error.value(), "raise fs.epoll.max_user_watches")));
  }
  close_in_forked_children(listener.release());
}

Acceptor::~Acceptor() { close(); }

void Acceptor::start(OnConnection on_connection, std::function<bool()> make_room) {
  on_connection_ = std::move(on_connection);
  make_room_ = std::move(make_room);
  wait_for_connection();
}

void Acceptor::wait_for_connection() {
  if (!io_->acceptor.is_open()) return;
  io_->acceptor.async_wait(asio::ip::tcp::acceptor::wait_read,
                           [self = shared_from_this()](const std::error_code& error) {
                             if (!error && !self->io_->pausing) self->accept_connections();
                           });
}

void Acceptor::accept_connections() {
  // First, so that an error on one connection does not leave the port deaf.
  wait_for_connection();
  for (int count = 0; count < kMostAtOnce && io_->acceptor.is_open(); ++count) {
    SocketAddress peer;
    FileDescriptor socket(accept4(io_->acceptor.native_handle(), peer.get(), &peer.length,
                                  SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.valid()) {
      on_connection_(std::move(socket), from_socket_address(peer.get()));
      continue;
    }
    if (errno == EAGAIN) return;
    const bool out_of_room =
        errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    if (out_of_room && !make_room_()) return pause();
  }
}

// Nothing here can be closed, so that only other parts of the program can make room.
void Acceptor::pause() {
  if (!io_->next_complaint || io_->next_complaint->expired()) {
    io_->next_complaint = Deadline::after(kComplaintPeriod);
    log(LogLevel::error, "bootstrap", "cannot accept connections for want of descriptors or ",
        "memory; raise ulimit -n");
  }
  io_->pausing = true;
  io_->timer.expires_after(kNoDescriptorsPause);
  io_->timer.async_wait([self = shared_from_this()](const std::error_code& error) {
    self->io_->pausing = false;
    if (error || !self->io_->acceptor.is_open()) return;
    std::error_code ignored;
    self->io_->acceptor.cancel(ignored);
    self->accept_connections();
  });
}

void Acceptor::close() {
  io_->timer.cancel();
  if (!io_->acceptor.is_open()) return;
  forget_in_forked_children(io_->acceptor.native_handle());
  std::error_code ignored;
  io_->acceptor.close(ignored);
}

}  // namespace hccl::bootstrap
