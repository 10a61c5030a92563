// SPDX-License-Identifier: Apache-2.0
// Asio waits for connections; accept4 takes them, for Asio's own accept leaves a moment without
// close-on-exec.
#include "bootstrap/acceptor.h"

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "bootstrap/control_thread.h"

#include <cerrno>

#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <sys/socket.h>

namespace hccl::bootstrap {
namespace {

constexpr int kBacklog = 4096;
constexpr std::chrono::milliseconds kNoDescriptorsPause{100};

}  // namespace

struct Acceptor::Io {
  explicit Io(asio::io_context& context) : acceptor(context), timer(context) {}

  asio::ip::tcp::acceptor acceptor;
  asio::steady_timer timer;
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
    : v6_(local_address(listener.get()).v6),
      io_(std::make_unique<Io>(ControlThread::instance().context())) {
  std::error_code error;
  io_->acceptor.assign(v6_ ? asio::ip::tcp::v6() : asio::ip::tcp::v4(), listener.get(), error);
  if (error) {
    throw Error(hcclSystemError,
                text("cannot watch the listening socket: ", error.message(), "; raise ulimit -n"));
  }
  close_in_forked_children(listener.release());
}

Acceptor::~Acceptor() { close(); }

void Acceptor::start(std::function<void(FileDescriptor)> on_connection,
                     std::function<void()> make_room) {
  on_connection_ = std::move(on_connection);
  make_room_ = std::move(make_room);
  wait_for_connection();
}

void Acceptor::wait_for_connection() {
  if (!io_->acceptor.is_open()) return;
  io_->acceptor.async_wait(asio::ip::tcp::acceptor::wait_read,
                           [self = shared_from_this()](const std::error_code& error) {
                             if (!error) self->accept_connections();
                           });
}

void Acceptor::accept_connections() {
  while (io_->acceptor.is_open()) {
    FileDescriptor socket(
        accept4(io_->acceptor.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.valid()) {
      on_connection_(std::move(socket));
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN) return wait_for_connection();
    return pause();
  }
}

void Acceptor::pause() {
  log(LogLevel::error, "bootstrap", "cannot accept a connection: ", system_error_text(errno),
      "; raise ulimit -n");
  make_room_();
  io_->timer.expires_after(kNoDescriptorsPause);
  io_->timer.async_wait([self = shared_from_this()](const std::error_code& error) {
    if (!error) self->accept_connections();
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
